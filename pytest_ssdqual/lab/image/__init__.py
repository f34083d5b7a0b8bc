"""The guest of the lab: a kernel and an initramfs, built from Debian or Ubuntu packages and cached.

Building needs no root rights and installs nothing on the host. The code of the image and the guest's files are a part
of its key in the cache, so that their change builds a new image. The main type is ``image.Image``.
"""

# Facts about block devices that only system calls return; see survey.sh.
#
# Arguments: `loops` (what loop devices are over) or `drives` (who else may have these drives); nodes.
# Output: records as survey.sh prints them.
# Exit status: not used.

use strict;
use Fcntl;
use constant {
    ENXIO => 6, EBUSY => 16, ENOTTY => 25, EINVAL => 22,
    LOOP_GET_STATUS64 => 0x4C05, SG_IO => 0x2285,
    NVME_ID => 0x4E40, NVME_ADMIN => 0xC0484E41, NVME_IO => 0xC0484E43,
};
my $wide = length(pack('P', '')) == 8;    # the layouts below are those of 64-bit kernels
my $narrow = 'a program of 32 bits cannot ask for the reservations of';

sub tell_of { print map { "$_\0" } @_ }

# The reservations of a drive are not known. Returns nothing, which callers return.
sub blind { tell_of('blind_drive', 'reservations', @_); return }

# The kernel keeps the file of a loop device open, no process does; its name may be lost. LOOP_GET_STATUS64 reports the
# device that the file is on, and the one that it is.
sub loops {
    for my $path (@_) {
        my ($device, $info) = (undef, "\0" x 232);
        unless (open($device, '<', $path) && ioctl($device, LOOP_GET_STATUS64, $info)) {
            tell_of('blind', 'layers', "what $path is over could not be read: $!") unless $! == ENXIO;    # detached
            next;
        }
        for my $number ((unpack 'QQQ', $info)[0, 2]) {
            my ($major, $minor) = ($number >> 8 & 0xFFF, $number & 0xFF | $number >> 12 & 0xFFF00);
            tell_of('over', substr($path, 5), sprintf('%x', $major), sprintf('%x', $minor)) if $major;
        }
    }
}

# md and dm stay on their members, so that waiting does not help; of a run on an array that is each member, each time.
sub is_held {
    (my $name = substr $_[0], 5) =~ s{/}{!}g;
    opendir(my $holders, "/sys/class/block/$name/holders") or return 0;
    return scalar grep { !/^\./ } readdir $holders;
}

# Is a device claimed (mount of any namespace, swap, md, dm, ZFS)? The kernel answers EBUSY to O_EXCL, for a disk also
# when one of its partitions is claimed. Read-only, non-blocking, in three rounds: udev's claims are short.
sub exclusive {
    my %error;
    for my $round (1 .. 3) {
        my @busy = grep { !defined $error{$_} || $error{$_} == EBUSY && !is_held($_) } @_;
        select(undef, undef, undef, 0.2) if @busy && $round > 1;
        for my $path (@busy) {
            $error{$path} = sysopen(my $device, $path, O_RDONLY | O_EXCL | O_NONBLOCK) ? 0 : $! + 0;
        }
    }
    tell_of('probe', $_, $error{$_}) for @_;
}

# A buffer that nothing else shares (perl copies on write, the kernel does not).
sub clear { $_[0] = ''; vec($_[0], $_[1] - 1, 8) = 0 }

# Status of an NVMe command, or the number of an error below 0; its data are in $_[4].
sub nvme {
    my ($device, $request, $opcode, $nsid, undef, @dwords) = @_;
    clear($_[4], 4096);
    my $command = pack 'CCSLLLQQLLL6LL', $opcode, 0, 0, $nsid, 0, 0, 0, unpack('Q', pack('P', $_[4])), 0,
        length($_[4]), @dwords, (0) x (6 - @dwords), 5000, 0;
    my $status = ioctl($device, $request, $command);
    return defined $status ? $status & 0x7FF : -$!;
}

sub nvme_namespace {
    my ($path, $device) = @_;
    my $nsid = ioctl($device, NVME_ID, 0) or return;
    return blind($path, "$narrow $path") unless $wide;
    my ($identity, $report);
    my $status = nvme($device, NVME_ADMIN, 0x06, $nsid, $identity, 0);
    return blind($path, "whether $path has further ports is not known: Identify ended with $status") if $status;
    my ($size, $used, $shared, $capabilities) = unpack 'Q x8 Q x6 CC', $identity;
    tell_of('allocated', $path, $used, $size);    # NUSE, NSZE
    tell_of('multiport', $path) if $shared & 1;
    return unless $capabilities;
    $status = nvme($device, NVME_IO, 0x0E, $nsid, $report, 1023, 0);
    # Host Identifier Inconsistent Format: hosts have identifiers of 128 bits.
    $status = nvme($device, NVME_IO, 0x0E, $nsid, $report, 1023, 1) if $status == 0x18;
    return if $status == 1;    # Invalid Command Opcode
    return blind($path, "reservations of $path could not be read: the report ended with $status") if $status;
    my ($type, $low, $high) = unpack 'x4 CCC', $report;
    tell_of('reserved', $path, $type, $low | $high << 8);
}

# Data of PERSISTENT RESERVE IN, or nothing; unsupported is silent.
sub reserve_in {
    my ($path, $device, $action) = @_;
    for my $try (1, 2) {
        my ($data, $sense, $cdb) = ('', '', pack('CCx5nC', 0x5E, $action, 1024, 0));
        clear($data, 1024);
        clear($sense, 64);
        my $header = pack 'llCCSLQQQLLlx4QCCCCSSlLLx4', ord('S'), -3, 10, 64, 0, 1024,
            (map { unpack 'Q', pack 'P', $_ } $data, $cdb, $sense), 5000, 0, 0, 0, (0) x 9;
        unless (ioctl($device, SG_IO, $header)) {
            blind($path, "reservations of $path could not be read: $!") unless $! == ENOTTY || $! == EINVAL;
            return;
        }
        my ($status, $host, $driver) = unpack 'x64 C x3 SS', $header;
        return $data if !$status && !$host && !($driver & 7);
        if ($status == 0x18) { tell_of('reserved', $path, 1, 0); return }    # by RESERVE(6)
        my $key = ord(substr($sense, (ord($sense) & 0x7F) < 0x72 ? 2 : 1, 1)) & 0xF;
        next if $status == 2 && $key == 6 && $try == 1;                      # UNIT ATTENTION
        return if $status == 2 && $key == 5;                                 # ILLEGAL REQUEST
        my $why = sprintf 'status %#x, sense key %#x', $status, $key;
        return blind($path, "reservations of $path could not be read: $why");
    }
}

# SCSI drives but SATA's and USB's: those have no second port, and bridges of USB do not take every command.
sub scsi {
    my ($path, $device) = @_;
    (my $sysfs = substr $path, 5) =~ s{/}{!}g;
    $sysfs = "/sys/class/block/$sysfs";
    return if !-e "$sysfs/device/scsi_level" || (readlink($sysfs) || '') =~ m{/usb\d};
    my ($vendor, $inquiry) = ('', '');
    if (open my $file, '<', "$sysfs/device/vendor") { $vendor = <$file> }
    return if $vendor =~ /^ATA\b/;
    if (open my $file, '<:raw', "$sysfs/device/inquiry") { read $file, $inquiry, 96 }
    tell_of('multiport', $path) if length $inquiry > 6 && ord(substr $inquiry, 6) & 0x10;
    return blind($path, "$narrow $path") unless $wide;
    my $keys = reserve_in($path, $device, 0);
    return unless defined $keys;
    my $held = reserve_in($path, $device, 1);
    return unless defined $held;
    my $type = unpack('x4 N', $held) ? unpack('x21 C', $held) & 0xF : 0;
    tell_of('reserved', $path, $type, unpack('x4 N', $keys) >> 3);
}

$| = 1;
my $mode = shift @ARGV;
if ($mode eq 'loops') { loops(@ARGV) }
else {
    exclusive(@ARGV);
    for my $path (@ARGV) {
        next unless sysopen(my $device, $path, O_RDONLY | O_NONBLOCK);
        nvme_namespace($path, $device);
        scsi($path, $device);
    }
}

# The device number of what each parameter, a path, leads to: records "MAJOR MINOR" in hexadecimal digits, or "-".
for path; do
    number=-
    [ -b "$path" ] && number=$(stat -L -c '%t %T' "$path")
    printf '%s\0' "${number:--}"
done
printf 'end\0'

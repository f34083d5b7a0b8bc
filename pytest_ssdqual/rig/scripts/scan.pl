# Reads ranges of a device and looks for data that begin each 16 bytes with known ones; sample.sh starts it.
#
# Arguments: the known bytes in hexadecimal digits, the device, of each range its begin and its length in bytes.
# Output: of each range a line: bytes read, offset on the device of the first known bytes or `-`, the byte that all are
#   equal to (decimal) or `-`, a checksum.
# Exit status: not 0 if the device cannot be opened; a range that cannot be read to its end has fewer bytes.

use strict;
use warnings;
use Fcntl;
use integer;
my ($MIB, $PAGE) = (1 << 20, 4096);
my ($known, $path, @ranges) = @ARGV;
$known = pack('H*', $known);
# O_DIRECT wants memory that begins on a page; a scalar's begins anywhere.
my $memory = "\0" x ($MIB + 2 * $PAGE);
my $pad = -unpack('J', pack('p', $memory)) & ($PAGE - 1);
sysopen(my $device, $path, O_RDONLY | O_NONBLOCK | O_DIRECT) or die "$path: $!\n";
while (my ($begin, $length) = splice @ranges, 0, 2) {
    my ($read, $old, $fill, $sum, $whole) = (0, '-', undef, 0, '');
    sysseek($device, $begin, 0);
    while ($read < $length) {
        my $got = sysread($device, $memory, $length - $read < $MIB ? $length - $read : $MIB, $pad);
        last unless $got;
        my $data = substr($memory, $pad, $got);
        my $at = index($data, $known);
        $old = $begin + $read + $at if $at >= 0 && $old eq '-';
        $fill = ord $data unless defined $fill;
        if ($fill ne '-') {
            $whole = chr($fill) x $got if length $whole != $got;
            $fill = '-' if $data ne $whole;
        }
        $sum = ($sum * 31 + unpack('%48N*', $data)) & ((1 << 48) - 1);
        $read += $got;
    }
    print join(' ', $read, $old, defined $fill ? $fill : '-', $sum), "\n";
}

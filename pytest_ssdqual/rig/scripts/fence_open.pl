# Open every drive for the command that follows, and become that command; see fence.sh.
#
# Arguments: the command, `sh -c TEXT bound`, in four words; $ARGV[4] `alone` for O_EXCL; $ARGV[5] the number of drives;
#   of each drive four words, of which the first is its path. The path then has the descriptor's number and a colon in
#   front. udev's claims are short, so a busy drive is tried again for two seconds.
# Output: that of the command.
# Exit status: that of the command; 76 if a drive cannot be opened, 127 if there is no such command.

use Fcntl;
$^F = 1 << 20;
my ($how, $count, @held) = @ARGV[4, 5];
for my $at (map { 6 + 4 * $_ } 0 .. $count - 1) {
    my ($path, $tries, $device) = ($ARGV[$at], 0);
    until (sysopen($device, $path, O_RDONLY | O_NONBLOCK | ($how eq 'alone' ? O_EXCL : 0))) {
        if ($! != 16 || ++$tries > 10) { print STDERR "$path: $!\n"; exit 76 }
        select(undef, undef, undef, 0.2);
    }
    push @held, $device;
    $ARGV[$at] = fileno($device) . ":$path";
}
exec { $ARGV[0] } @ARGV;
exit 127;

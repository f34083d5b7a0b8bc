# Samples of what is on devices, with a child for each device; see sample.sh.
#
# Arguments: the number of spots; of each device its path and its size in bytes.
# Output: see sample.sh.
# Exit status: not 0 if a sample was cut short.

use strict;
use warnings;
use Fcntl;
use integer;
my ($MIB, $PAGE, $MOST_ERRORS) = (1 << 20, 4096, 3);
my ($spots, @devices) = @ARGV;

sub blank { my $page = shift; return $page eq substr($page, 0, 1) x length $page }

sub sample {
    my ($path, $size) = @_;
    my ($read, $first_found, $errors) = (0, undef, 0);
    my $say = sub { print STDOUT $_[0] . "\0" };
    my $fail = sub { $errors++; $say->("error $_[0] $_[1]") };
    $say->("drive $path");
    # O_DIRECT wants memory that begins on a page; a scalar's begins anywhere.
    my $memory = "\0" x ($MIB + 2 * $PAGE);
    my $pad = -unpack("J", pack("p", $memory)) & ($PAGE - 1);
    my $device;
    if (!sysopen($device, $path, O_RDONLY | O_NONBLOCK | O_DIRECT)) {
        $fail->(0, "$!");
        $say->("read 0");
        return;
    }
    my $get = sub {
        my ($at, $length) = @_;
        my $got = defined sysseek($device, $at, 0) ? sysread($device, $memory, $length, $pad) : undef;
        if (!defined $got || $got != $length) { $fail->($at, defined $got ? "short read" : "$!"); return }
        $read++;
        return substr($memory, $pad, $length);
    };
    my $pages = sub {
        my ($at, $length, $told) = @_;
        my $all = $get->($at, $length);
        return unless defined $all;
        for (my $place = 0; $place < $length; $place += $PAGE) {
            my $page = substr($all, $place, $PAGE);
            next if blank($page);
            $told->($at + $place, $page);
        }
    };
    my $keep = sub { $first_found = $_[0] unless defined $first_found };
    my ($first, $is_labelled) = ($size < $MIB ? $size : $MIB, 0);
    $pages->(0, $first, sub {
        my ($at, $page) = @_;
        $say->(join " ", "page", $at, unpack("H*", substr($page, 0, 16)), unpack("H*", substr($page, -16)));
        $is_labelled = 1 if $at == 0 && $page =~ /^pytest-ssdq/;
        $say->("label " . unpack("H*", $page)) if $is_labelled && $at == 0;
    });
    return $say->("read $read") if $is_labelled;
    my $last = $size - $MIB > $first ? $size - $MIB : $first;
    my ($blocks, $random) = (($last - $first) / $PAGE, 1);
    for my $number (0 .. ($blocks > 0 ? $spots : 0) - 1) {
        last if $errors >= $MOST_ERRORS;
        $random = ($random * 1103515245 + 12345) % 2147483648;
        my $spot = $first + ($number * 65536 + $random / 32768) * $blocks / ($spots * 65536) * $PAGE;
        $pages->($spot, $PAGE, $keep);
    }
    $pages->($last, $size - $last, $keep) if $size > $last && $errors < $MOST_ERRORS;
    $say->("data $first_found") if defined $first_found;
    $say->("read $read");
}

my @pipes;
while (my ($path, $size) = splice @devices, 0, 2) {
    my $child = open(my $pipe, "-|");
    die "fork: $!" unless defined $child;
    if (!$child) { sample($path, $size); close STDOUT or exit 1; exit 0 }
    push @pipes, $pipe;
}
for my $pipe (@pipes) {
    local $/;
    my $said = <$pipe>;
    close $pipe or die "a sample was cut short";
    print $said;
}
print "end\0";

# Samples of what is on devices, with a child for each device; see sample.sh.
#
# Arguments: hundredths of a second, least number of drawn places, seed; of each device path, size and known places.
# Output: see sample.sh.
# Exit status: not 0 if a sample was cut short.

use strict;
use warnings;
use Fcntl;
use integer;
my ($MIB, $PAGE, $MOST_ERRORS) = (1 << 20, 4096, 3);
# A place has 52 bits, in two halves: 26 bits times the pages of a device of 280 TB are below 2^63. The step is the
# golden ratio of 2^52, and odd.
my ($HALF, $STEP) = (26, 2783377641436327);
my ($LOW, $MASK) = ((1 << $HALF) - 1, (1 << 2 * $HALF) - 1);
my ($time, $least, $seed, @devices) = @ARGV;

# Time::HiRes is a package of its own on RHEL.
sub now {
    open(my $file, '<', '/proc/uptime') or return time * 100;
    my ($seconds) = split ' ', <$file>;
    $seconds =~ s/\.//;
    return $seconds;
}

sub sample {
    my ($path, $size, $known) = @_;
    my ($read, $first_found, $errors, $filling, $end) = (0, undef, 0, '', now() + $time);
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
    my $keep = sub { $first_found = $_[0] unless defined $first_found };
    my $blank = sub {
        my ($page) = @_;
        my $byte = substr($page, 0, 1);
        return 0 if $page ne $byte x length $page;
        $filling = $byte unless length $filling || $byte eq "\0" || $byte eq "\xff";
        return $byte eq "\0" || $byte eq "\xff" || $byte eq $filling;
    };
    my $look = sub {
        my ($at, $length, $told) = @_;
        my $stop = $at + $length;
        for (; $at < $stop && $errors < $MOST_ERRORS; $at += $MIB) {
            my $all = $get->($at, $stop - $at < $MIB ? $stop - $at : $MIB);
            next unless defined $all;
            for (my $place = 0; $place < length $all; $place += $PAGE) {
                my $page = substr($all, $place, $PAGE);
                $told->($at + $place, $page) unless $blank->($page);
            }
        }
    };
    my ($first, $is_labelled) = ($size < $MIB ? $size : $MIB, 0);
    $look->(0, $first, sub {
        my ($at, $page) = @_;
        return $keep->($at) if $page eq substr($page, 0, 1) x length $page;
        $say->(join " ", "page", $at, unpack("H*", substr($page, 0, 16)), unpack("H*", substr($page, -16)));
        $is_labelled = 1 if $at == 0 && $page =~ /^pytest-ssdq/;
        $say->("label " . unpack("H*", $page)) if $is_labelled && $at == 0;
    });
    return $say->("read $read") if $is_labelled;
    my $last = $size - $MIB > $first ? $size - $MIB : $first;
    for my $stretch ($known eq '-' ? () : split /,/, $known) { $look->((split /:/, $stretch), $keep) }
    $look->($last, $size - $last, $keep);
    my $blocks = ($last - $first) / $PAGE;
    my $place = $seed & $MASK;
    for (my $number = 0; $blocks > 0 && !defined $first_found && $errors < $MOST_ERRORS; $number++) {
        last if $number >= $least && ($number & 15) == 0 && now() >= $end;
        $place = ($place + $STEP) & $MASK;
        my $block = (($place >> $HALF) * $blocks + (($place & $LOW) * $blocks >> $HALF)) >> $HALF;
        $look->($first + $block * $PAGE, $PAGE, $keep);
    }
    $say->("data $first_found") if defined $first_found;
    $say->("read $read");
}

my @pipes;
while (my ($path, $size, $known) = splice @devices, 0, 3) {
    my $child = open(my $pipe, "-|");
    die "fork: $!" unless defined $child;
    if (!$child) { sample($path, $size, $known); close STDOUT or exit 1; exit 0 }
    push @pipes, $pipe;
}
for my $pipe (@pipes) {
    local $/;
    my $said = <$pipe>;
    close $pipe or die "a sample was cut short";
    print $said;
}
print "end\0";

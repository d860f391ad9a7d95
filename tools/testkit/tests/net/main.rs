//! `sock` between network name spaces of this host: other MTUs, real loss, duplication and
//! reordering by nftables, a bottleneck that TCP shares, groups on a bridge, and a capture that the
//! dissector explains. `tcp` there: loss, small frames, firewalls, a cable that is pulled, flows
//! that are capped. And `sm` between pid name spaces, `auto` between hosts, and jobs over several.
//!
//! Everything happens in name spaces without names, which end with this process however it ends;
//! nothing outside of them is touched. Each test is a process of its own, and several run at once,
//! but for those that compare rates.

/// Says something on standard output: what a runner of tests says is read by people and by
/// `ci/test`.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        // Without an output there is nobody to tell.
        let _ = writeln!(std::io::stdout(), $($text)*);
    }};
}

mod auto;
mod deadlines;
mod dissector;
mod jobs;
mod killed;
mod loss;
mod multicast;
mod names;
mod nat;
mod path_mtu;
mod pids;
mod pingpong;
mod ports;
mod proc;
mod reject;
mod routes;
mod sealed;
mod shares;
mod streams;
mod stripped;
mod tcp;
mod traffic;

use cci_conformance::namespace::{self, has};
use rustix::process::{Signal, set_parent_process_death_signal};
use std::num::NonZero;
use std::panic::catch_unwind;
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Why a test cannot be run here: what it panics with.
struct Ignored(String);

/// A test: name, what it does, the programs that it needs.
struct Test(&'static str, fn(), &'static [&'static str]);

const TESTS: &[Test] = &[
    Test("pingpong_over_1500", pingpong::over_1500, &["ip"]),
    Test("pingpong_over_9000", pingpong::over_9000, &["ip"]),
    Test("perf_passes_a_firewall_with_one_port", pingpong::through_one_port, &["ip", "nft"]),
    Test("perf_passes_a_firewall_with_a_range_of_ports", pingpong::through_a_range_of_ports, &["ip", "nft"]),
    Test("nothing_is_lost_by_loss", loss::loss, &["ip", "nft"]),
    Test("nothing_is_lost_or_doubled_by_loss_duplication_and_reordering", loss::everything, &["ip", "nft", "tc"]),
    Test("a_moment_of_reject_heals", reject::heals, &["ip", "nft"]),
    Test("a_peer_that_is_killed_on_another_host_is_told_of", killed::elsewhere, &["ip"]),
    Test("a_restarted_server_is_found_by_its_port", ports::restarted, &["ip"]),
    Test("whoever_listens_at_a_port_is_found_by_every_way", ports::every_way, &["ip"]),
    Test("endpoints_of_one_port_at_two_addresses_are_told_apart", ports::two_addresses, &["ip"]),
    Test("a_slow_server_sees_one_request_at_its_port", ports::slow_server, &["ip"]),
    Test("an_endpoint_with_a_secret_is_not_found_by_its_port", ports::secret, &["ip"]),
    Test("a_service_names_the_address_on_its_host_and_for_others", ports::between_hosts, &["ip"]),
    Test("a_found_device_is_reached_from_its_host_alone", ports::found_devices, &["ip"]),
    Test("a_wrong_service_names_the_right_form_in_every_transport", ports::wrong_services, &["ip"]),
    Test("a_silent_name_server_holds_no_call_up", names::silent, &["ip", "unshare", "mount"]),
    Test("a_host_with_two_addresses_is_reached_by_the_second", names::several_addresses, &["ip", "nft", "mount"]),
    Test("a_host_on_two_networks_reaches_servers_on_both", routes::two_networks, &["ip"]),
    Test("an_address_that_is_named_is_kept_and_silence_has_a_reason", routes::named_address, &["ip"]),
    Test("a_server_with_two_addresses_answers_from_the_one_asked", routes::server_with_two_addresses, &["ip"]),
    Test("a_host_without_ipv4_has_an_endpoint_that_others_reach", routes::without_ipv4, &["ip"]),
    Test("a_nat_that_maps_a_client_anew_is_noticed", nat::maps_anew, &["ip", "nft"]),
    Test("endpoints_open_and_connect_without_proc", proc::opens_and_connects, &["unshare", "mount", "env"]),
    Test("path_mtu_is_found_where_a_router_tells", path_mtu::told, &["ip"]),
    Test("path_mtu_is_found_where_nobody_tells", path_mtu::untold, &["ip", "nft"]),
    Test("a_path_that_shrinks_under_traffic_loses_nothing_where_a_router_tells", path_mtu::shrinks_told, &["ip", "tc"]),
    Test(
        "a_path_that_shrinks_under_traffic_loses_nothing_where_nobody_tells",
        path_mtu::shrinks_untold,
        &["ip", "nft", "tc"],
    ),
    Test("the_dissector_knows_every_frame_of_a_live_exchange", dissector::live, &["ip", "dumpcap", "tshark"]),
    Test("sm_connects_between_pid_name_spaces", pids::connects, &["unshare", "env"]),
    Test("sm_of_two_pid_name_spaces_meet", pids::siblings, &["unshare", "env"]),
    Test("one_sender_three_receivers", multicast::one_sender, &["ip"]),
    Test("two_senders_three_receivers", multicast::two_senders, &["ip"]),
    Test("shares_with_tcp_over_200_megabits", shares::with_tcp, &["ip", "tc"]),
    Test("tcp_carries_everything_in_frames_of_1280_bytes", tcp::small_frames, &["ip"]),
    Test("tcp_loses_nothing_by_a_loss_of_5_percent", tcp::loss, &["ip", "nft"]),
    Test("tcp_notices_a_pulled_cable_by_the_send_timeout", tcp::pulled_with_a_timeout, &["ip", "nft"]),
    Test("tcp_notices_a_pulled_cable_by_30_s_of_silence", tcp::pulled_without_a_timeout, &["ip", "nft"]),
    Test("tcp_tells_of_a_reset_at_once", tcp::reset, &["ip", "nft"]),
    Test("tcp_tells_refused_from_dropped", tcp::refused_or_dropped, &["ip", "nft"]),
    Test("a_connect_ends_in_time_whatever_happened_on_the_way", deadlines::closed_then_silent, &["ip", "nft"]),
    Test("tcp_passes_a_firewall_with_one_port", tcp::one_port, &["ip", "nft"]),
    Test("tcp_streams_carry_what_one_flow_may_not", streams::capped_flows, &["ip", "nft", "tc"]),
    Test("tcp_streams_lose_nothing_by_a_loss_of_2_percent", streams::loss, &["ip", "nft"]),
    Test("tcp_streams_go_on_where_one_is_stalled", streams::stalled, &["ip", "nft"]),
    Test("tcp_streams_end_by_30_s_of_silence_on_one", streams::silent, &["ip", "nft"]),
    Test("tcp_streams_end_together_where_one_is_reset", streams::reset, &["ip", "nft"]),
    Test("auto_from_a_default_endpoint_reaches_another_host_by_udp", auto::default_endpoint, &["ip"]),
    Test("auto_answers_no_stranger_where_a_default_endpoint_reaches_out", auto::strangers, &["ip"]),
    Test("auto_from_a_default_endpoint_sends_frames_that_each_path_carries", auto::everything_outward, &["ip"]),
    Test("auto_from_a_default_endpoint_goes_by_tcp_where_udp_is_dropped", auto::default_and_firewall, &["ip", "nft"]),
    Test("auto_wakes_a_default_endpoint_for_another_host", auto::sleeper, &["ip"]),
    Test("auto_serves_another_host_while_the_program_is_absent", auto::absent, &["ip"]),
    Test("auto_tells_a_default_endpoint_that_has_no_way_to_another_host", auto::no_way, &["ip"]),
    Test("auto_is_reached_by_three_ways_with_one_uri_and_one_loop_serves_all", auto::three_ways, &["ip", "nft"]),
    Test("auto_connects_by_another_way_where_the_answer_is_lost", auto::lost_answer, &["ip", "nft"]),
    Test("auto_makes_one_request_of_each_connect_under_loss", auto::connects_under_loss, &["ip", "nft"]),
    Test("auto_is_reached_at_each_address_of_its_host_with_one_uri", auto::several_addresses, &["ip", "nft"]),
    Test("auto_is_explained_from_three_places", auto::explained, &["ip", "nft"]),
    Test("auto_serves_both_hosts_by_an_example_with_a_port", auto::examples, &["ip"]),
    Test("auto_leaves_new_connects_tcp_where_a_firewall_drops_udp", auto::firewall, &["ip", "nft"]),
    Test("ranks_of_two_hosts_connect_by_their_names", jobs::ring, &["ip", "mount", "unshare"]),
    Test("ranks_of_two_hosts_accept_no_stranger", jobs::strangers, &["ip", "mount", "unshare"]),
    Test("nobody_between_two_hosts_reads_what_ranks_send", sealed::jobs, &["ip", "mount", "unshare"]),
    Test("a_stripped_handshake_opens_nothing", stripped::handshake, &["ip"]),
    Test("ranks_without_a_secret_stay_on_the_loop_back_interface", jobs::without_a_secret, &["ip"]),
];

/// Those that compare rates, which other tests at the same time would change.
const ALONE: &[&str] = &[
    "shares_with_tcp_over_200_megabits",
    "tcp_streams_carry_what_one_flow_may_not",
    "the_dissector_knows_every_frame_of_a_live_exchange",
];
/// The argument after which this program runs one test by itself.
const ONE: &str = "--one";
/// The status of a test that cannot be run here.
const IGNORED: u8 = 77;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some(jobs::RANK) => return jobs::rank(),
        Some(sealed::RANK) => return sealed::rank(),
        _ => (),
    }
    if let [one, name] = &arguments[..]
        && one == ONE
    {
        return TESTS.iter().find(|test| test.0 == name).map_or(ExitCode::FAILURE, run_one);
    }
    let filters: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with('-')).collect();
    let wanted = |test: &&Test| filters.is_empty() || filters.iter().any(|filter| test.0.contains(filter.as_str()));
    let tests: Vec<&Test> = TESTS.iter().filter(wanted).collect();
    if arguments.iter().any(|argument| argument == "--list") {
        tests.iter().for_each(|test| say!("{}: test", test.0));
        return ExitCode::SUCCESS;
    }
    say!("\nrunning {} tests", tests.len());
    let begin = Instant::now();
    let (alone, others): (Vec<&Test>, Vec<&Test>) = tests.iter().partition(|test| ALONE.contains(&test.0));
    // They wait more than they compute.
    let at_once = std::thread::available_parallelism().map_or(1, NonZero::get) + 1;
    let counts = [run_all(&others, at_once), run_all(&alone, 1)];
    let [passed, failed, ignored] = [0, 1, 2].map(|at| counts[0][at] + counts[1][at]);
    let (word, left_out, time) =
        (if failed == 0 { "ok" } else { "FAILED" }, TESTS.len() - tests.len(), begin.elapsed().as_secs_f64());
    say!(
        "\ntest result: {word}. {passed} passed; {failed} failed; {ignored} ignored; 0 measured; {left_out} filtered out; \
         finished in {time:.2}s\n"
    );
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs each test in a process of its own, so many at once; how many passed, failed and were
/// ignored.
fn run_all(tests: &[&Test], at_once: usize) -> [usize; 3] {
    let (next, counts) = (AtomicUsize::new(0), Mutex::new([0; 3]));
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                while let Some(test) = tests.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let own = std::env::current_exe().expect("this program");
                    let output = Command::new(own).args([ONE, test.0]).output().expect("this program again");
                    let mut counts = counts.lock().expect("nobody panics with it");
                    say!(
                        "{}{}",
                        String::from_utf8_lossy(&output.stderr),
                        String::from_utf8_lossy(&output.stdout).trim_end()
                    );
                    match output.status.code() {
                        Some(0) => counts[0] += 1,
                        Some(code) if code == i32::from(IGNORED) => counts[2] += 1,
                        Some(_) => counts[1] += 1,
                        None => {
                            say!("test {} ... FAILED ({})", test.0, output.status);
                            counts[1] += 1;
                        }
                    }
                }
            });
        }
    });
    counts.into_inner().expect("nobody panics with it")
}

/// Runs a test in name spaces of this process, and tells how it ended.
fn run_one(Test(name, run, programs): &Test) -> ExitCode {
    // It ends with who waits for it.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    let inside = namespace::enter();
    let missing = || programs.iter().find(|program| !has(program)).map(|program| format!("there is no {program}"));
    if let Some(why) = inside.err().or_else(missing) {
        say!("test {name} ... ignored, {why}");
        return ExitCode::from(IGNORED);
    }
    match catch_unwind(run).map_err(|panic| panic.downcast::<Ignored>()) {
        Ok(()) => {
            say!("test {name} ... ok");
            ExitCode::SUCCESS
        }
        Err(Ok(why)) => {
            say!("test {name} ... ignored, {}", why.0);
            ExitCode::from(IGNORED)
        }
        Err(Err(_)) => {
            say!("test {name} ... FAILED");
            ExitCode::FAILURE
        }
    }
}

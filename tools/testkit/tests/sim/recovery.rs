//! What a loss costs, in virtual time: one frame is lost, and the message is there within three
//! round trips. The twins lose more, or nothing, so that the threshold tells.

use cci_testkit::simulation::recovery::{ROUND_TRIP, deliver};

#[test]
fn without_loss_messages_take_half_a_round_trip() {
    let time = deliver(20, |_, _| false).expect("delivered");
    assert!((ROUND_TRIP / 2..ROUND_TRIP).contains(&time), "{time} ns");
}

#[test]
fn a_single_loss_is_recovered_within_three_round_trips() {
    let time = deliver(20, |frame, copy| frame == 5 && copy == 0).expect("delivered");
    assert!(time > ROUND_TRIP, "{time} ns: nothing was lost");
    assert!(time < 3 * ROUND_TRIP, "{time} ns");
}

#[test]
fn the_loss_of_the_last_frame_is_recovered_within_three_round_trips() {
    let time = deliver(20, |frame, copy| frame == 19 && copy == 0).expect("delivered");
    assert!(time > ROUND_TRIP, "{time} ns: nothing was lost");
    assert!(time < 3 * ROUND_TRIP, "{time} ns");
}

#[test]
fn the_loss_of_the_only_frame_is_recovered_within_three_round_trips() {
    let time = deliver(1, |_, copy| copy == 0).expect("delivered");
    assert!((ROUND_TRIP..3 * ROUND_TRIP).contains(&time), "{time} ns");
}

#[test]
fn what_is_lost_three_times_takes_longer() {
    let time = deliver(1, |_, copy| copy < 3).expect("delivered");
    assert!(time > 3 * ROUND_TRIP, "{time} ns");
}

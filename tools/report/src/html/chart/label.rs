//! Labels at the ends of lines, moved apart where they would cover each other.

/// Where labels go that would like to be at these heights: in the same order, `gap` apart at least,
/// between `top` and `bottom` as far as there is room.
pub(super) fn spread(wanted: &[f64], gap: f64, top: f64, bottom: f64) -> Vec<f64> {
    let mut order: Vec<_> = (0..wanted.len()).collect();
    order.sort_by(|a, b| wanted[*a].total_cmp(&wanted[*b]));
    let mut placed: Vec<f64> = order.iter().map(|at| wanted[*at].clamp(top, bottom.max(top))).collect();
    // Down from the top, then up again from the bottom.
    for at in 1..placed.len() {
        placed[at] = placed[at].max(placed[at - 1] + gap);
    }
    let mut limit = bottom;
    for place in placed.iter_mut().rev() {
        *place = place.min(limit);
        limit = *place - gap;
    }
    let mut places = vec![0.0; wanted.len()];
    for (at, place) in order.into_iter().zip(placed) {
        places[at] = place;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_that_do_not_meet_stay_where_they_are() {
        assert_eq!(spread(&[50.0, 10.0, 30.0], 10.0, 0.0, 100.0), [50.0, 10.0, 30.0]);
    }

    #[test]
    fn labels_that_meet_are_moved_apart_in_their_order_and_stay_inside() {
        for wanted in [&[50.0, 51.0, 52.0][..], &[99.0, 99.0, 99.0, 98.0], &[0.0, 0.0, -5.0], &[200.0]] {
            let places = spread(wanted, 10.0, 0.0, 100.0);
            for (at, place) in places.iter().enumerate() {
                assert!((0.0..=100.0).contains(place), "{places:?}");
                for (other, place_of_other) in places.iter().enumerate().skip(at + 1) {
                    assert!((place - place_of_other).abs() >= 10.0, "{places:?}");
                    assert!(wanted[at] == wanted[other] || (wanted[at] < wanted[other]) == (place < place_of_other));
                }
            }
        }
    }
}

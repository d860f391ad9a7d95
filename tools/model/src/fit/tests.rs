use super::{Fit, FitError, Observation, Path, Unknown};

/// `SplitMix64` (Steele, Lea, Flood 2014), and normal numbers from it by Box and Muller (1958).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// In (0, 1].
    fn uniform(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// The thesis's components.
const TRUE: [f64; 5] = [2085.0, 11.6, 7.0, 60.0, 670.0];

fn path(propagations: f64, switchings: f64) -> Path {
    Path { overheads: 2.0, propagations, forwardings: propagations - switchings - 1.0, switchings }
}

fn time(path: &Path, bytes: f64) -> f64 {
    let [o, c, p, f, s] = TRUE;
    path.overheads * (o + c * (bytes - 64.0)) + path.propagations * p + path.forwardings * f + path.switchings * s
}

const PATHS: [(f64, f64); 6] = [(1.0, 0.0), (2.0, 0.0), (3.0, 0.0), (4.0, 0.0), (2.0, 1.0), (4.0, 1.0)];

/// Times with an error of this part of each, of each path and some sizes.
fn observations(noise: f64, seed: u64) -> Vec<Observation> {
    let mut random = Random(seed);
    let mut observe = |(links, switchings), bytes| {
        let path = path(links, switchings);
        Observation { path, bytes, ns: time(&path, bytes) * (1.0 + noise * random.normal()) }
    };
    PATHS.into_iter().flat_map(|of| [64.0, 256.0, 1024.0].map(|bytes| observe(of, bytes))).collect()
}

#[test]
fn without_noise_the_fit_is_exact() {
    for (unknown, at) in
        [(Unknown::Propagation, 2), (Unknown::Overhead, 0), (Unknown::Forwarding, 3), (Unknown::Switching, 4)]
    {
        let fit = Fit::new(&observations(0.0, 1), &[(unknown, TRUE[at])], 64.0).unwrap();
        for (unknown, value) in Unknown::ALL.into_iter().zip(TRUE) {
            let found = fit.unknown(unknown).unwrap().value;
            assert!((found - value).abs() < 1e-6 * value, "{}: {found}", unknown.name());
        }
        assert_eq!((fit.degrees, fit.is_separated()), (18 - 4, true));
    }
}

#[test]
fn without_a_known_component_only_the_sums_are_told() {
    let fit = Fit::new(&observations(0.0, 1), &[], 64.0).unwrap();
    let told: Vec<_> = Unknown::ALL.into_iter().filter(|unknown| fit.unknown(*unknown).is_some()).collect();
    assert_eq!((told, fit.is_separated()), (vec![Unknown::PerByte], false));
    for ((name, sum), value) in fit.sums().into_iter().zip([2.0 * 2085.0 - 60.0, 67.0, 610.0]) {
        assert!((sum.unwrap().value - value).abs() < 1e-6 * value, "{name}: {sum:?}");
    }
    // What is not separated predicts all the same.
    let other = path(5.0, 2.0);
    assert!((fit.predict(&other, 512.0).unwrap().value - time(&other, 512.0)).abs() < 1e-6);
    // A path of another kind depends on more.
    assert_eq!(fit.predict(&Path { overheads: 1.0, ..other }, 64.0), None);
}

/// The bar: of 1,000 fits at 5 % noise, the intervals of 95 % hold the true value in 930 to 970,
/// for each parameter.
#[test]
fn intervals_hold_the_truth_as_often_as_they_say() {
    let mut held = [0; 5];
    let mut sums_held = [0; 3];
    for seed in 0..1000 {
        let observations = observations(0.05, seed);
        let fit = Fit::new(&observations, &[(Unknown::Propagation, 7.0)], 64.0).unwrap();
        for ((unknown, value), held) in Unknown::ALL.into_iter().zip(TRUE).zip(&mut held) {
            *held += u32::from(fit.unknown(unknown).unwrap().holds(value));
        }
        let fit = Fit::new(&observations, &[], 64.0).unwrap();
        for (((_, sum), value), held) in fit.sums().into_iter().zip([4110.0, 67.0, 610.0]).zip(&mut sums_held) {
            *held += u32::from(sum.unwrap().holds(value));
        }
    }
    // What was given is no estimate.
    assert_eq!(held[Unknown::Propagation as usize], 1000);
    held[Unknown::Propagation as usize] = 950;
    assert!(held.iter().chain(&sums_held).all(|held| (930..=970).contains(held)), "{held:?}, sums {sums_held:?}");
}

#[test]
fn one_size_tells_all_but_the_cost_of_a_byte() {
    let observations: Vec<_> = observations(0.0, 1).into_iter().filter(|seen| seen.bytes == 64.0).collect();
    let fit = Fit::new(&observations, &[(Unknown::Propagation, 7.0)], 64.0).unwrap();
    assert_eq!(fit.unknown(Unknown::PerByte), None);
    assert!(fit.is_separated());
}

#[test]
fn what_is_missing_is_named() {
    let all = observations(0.0, 1);
    let missing = |keep: fn(&Observation) -> bool| {
        let kept: Vec<_> = all.iter().copied().filter(keep).collect();
        Fit::new(&kept, &[(Unknown::Propagation, 7.0)], 64.0).unwrap_err().to_string()
    };
    assert!(missing(|_| false).contains("there are none"));
    assert!(missing(|seen| seen.path.propagations == 4.0).contains("another number of links"));
    assert!(missing(|seen| seen.path.switchings == 0.0).contains("no path switches"));
    assert!(missing(|seen| seen.path.switchings == 1.0).contains("switch 1 times"));
    assert!(missing(|seen| seen.path.propagations == 1.0 || seen.path == path(2.0, 1.0)).contains("grow together"));
    let few = [all[0], all[3], all[12], all[1]];
    let error = Fit::new(&few, &[(Unknown::Propagation, 7.0)], 64.0).unwrap_err();
    assert!(error.to_string().contains("another size"), "{error}");
    let wrong = Observation { ns: 0.0, ..all[0] };
    assert!(matches!(Fit::new(&[wrong], &[], 64.0), Err(FitError::Impossible(_))));
}

//! Examples below the help of each command. A test runs each through the parser.

pub(crate) const OF_ALL: &str = "\
Examples:
  cci info                              the devices of this host
  cci doctor                            what keeps it from being fast, with remedies
  cci perf pingpong --local             latency over size, between two processes
  cci explain sock://127.0.0.1:5000     which way to an endpoint messages take
  cci top                               endpoints of this host, live
  cci run -n 4 ./program                a parallel job of four ranks";

pub(crate) const INFO: &str = "\
Examples:
  cci info
  cci info --json";

pub(crate) const EXPLAIN: &str = "\
Examples:
  cci explain sock://127.0.0.1:5000
  cci explain sock://192.0.2.7:5000 --timeout 10s";

pub(crate) const DOCTOR: &str = "\
Examples:
  cci doctor
  cci doctor --quiet                    only what can be improved
  cci doctor --json";

pub(crate) const PERF: &str = "\
Examples:
  cci perf pingpong --local
  cci perf bw --local --op write --size 64K..64M --plot bandwidth.svg
  cci perf --server --transport sock --key port=5000 --key listen=network
  cci perf pingpong --connect sock://192.0.2.1:5000
  cci perf pingpong --local --touch --peers installed";

pub(crate) const BENCH: &str = "\
Examples:
  cci bench
  cci bench --transport sm --quick
  cci bench --strict --json bench.json";

pub(crate) const MODEL: &str = "\
Examples:
  cci model
  cci model latency --help";

pub(crate) const RUN: &str = "\
Examples:
  cci run -n 4 ./program
  cci run -n 8 --hosts one:4,two:4 --label ./program argument
  cci run -n 1 ./server : -n 4 ./client argument
  cci run --mpi=own -n 4 python program.py";

pub(crate) const MPI_ENV: &str = "\
Examples:
  cci mpi-env ./program
  cci mpi-env --mpi openmpi";

pub(crate) const JOB: &str = "\
Examples:
  cci run -n 4 cci job
  mpiexec -n 4 cci job";

pub(crate) const KEY: &str = "\
Examples:
  cci key new
  cci key new /etc/store/secret
  cci key show                          where a secret is found, and its label
  cci key show --secret /etc/store/secret";

pub(crate) const TOP: &str = "\
Examples:
  cci top
  cci top --once --sort wait
  cci top --json --interval 500ms
  cci top --listen                      OpenMetrics at http://127.0.0.1:9617/metrics";

pub(crate) const COMPLETION: &str = "\
Examples:
  cci completion bash > ~/.local/share/bash-completion/completions/cci
  cci completion zsh > ~/.zfunc/_cci
  cci completion fish > ~/.config/fish/completions/cci.fish";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::Arguments;
    use clap::CommandFactory;
    use std::ffi::OsString;

    /// The commands of an example: what begins with `cci`, to where its explanation or a
    /// redirection begins.
    fn commands(examples: &str) -> Vec<Vec<OsString>> {
        let lines = examples.lines().filter_map(|line| Some(&line[line.find("cci ")?..]));
        let command = |line: &str| line.split("   ").next().and_then(|line| line.split(" > ").next()).map(String::from);
        lines.filter_map(command).map(|line| line.split_whitespace().map(OsString::from).collect()).collect()
    }

    #[test]
    fn each_example_is_a_command_line() {
        let all = [OF_ALL, INFO, EXPLAIN, DOCTOR, PERF, BENCH, MODEL, RUN, MPI_ENV, JOB, KEY, TOP, COMPLETION];
        for examples in all {
            let commands = commands(examples);
            assert_eq!(commands.len(), examples.lines().count() - 1, "{examples}");
            for command in commands {
                match Arguments::read(command.clone()) {
                    Err(error) if error.use_stderr() => panic!("{command:?}: {error}"),
                    _ => {}
                }
            }
        }
    }

    #[test]
    fn each_command_has_examples_and_no_help_is_wider_than_a_page() {
        let mut all = Arguments::command();
        all.build();
        for command in all.get_subcommands_mut().filter(|command| command.get_name() != "help") {
            let help = command.clone().render_long_help().to_string();
            assert!(help.contains("Examples:\n  "), "{}", command.get_name());
            for line in help.lines() {
                assert!(line.chars().count() <= 100, "{line:?} in the help of {}", command.get_name());
            }
        }
    }
}

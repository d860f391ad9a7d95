//! `cci model`: how long messages take on networks that one may not have.

mod against;
mod answer;
mod average;
mod crossover;
mod example;
mod families;
mod figure;
mod fit;
mod latency;
mod measured;
mod pattern;
mod plot;
mod quantity;
mod refusal;
pub(crate) mod section;
mod sensitivity;
mod simulate;
mod system;
mod validate;

use cci_report::UserError;
use clap::{Args, Subcommand};

#[derive(Args, Debug)]
pub(crate) struct ModelArguments {
    #[command(subcommand)]
    command: Option<ModelCommand>,
}

#[derive(Subcommand, Debug)]
enum ModelCommand {
    /// One message from one node to another: its route, and what request, response and transaction
    /// cost
    Latency(latency::LatencyArguments),
    /// Mean components and latency over all pairs of nodes
    Average(average::AverageArguments),
    /// How long a traffic pattern takes: on the idle network, under load, and where it saturates
    Pattern(pattern::PatternArguments),
    /// The sizes at which another topology becomes the best
    Crossover(crossover::CrossoverArguments),
    /// What a change of each parameter does to a time or to a crossover point, and the cheapest
    /// change that moves one
    Sensitivity(sensitivity::SensitivityArguments),
    /// Draw latency over size with crossover marks
    Plot(plot::PlotArguments),
    /// Simulate a pattern with the real protocol on every node, in virtual time, and compare it
    /// with the analysis
    Simulate(simulate::SimulateArguments),
    /// Find the components of latency from measured paths: files of `cci perf pingpong --json`
    Fit(fit::FitArguments),
    /// Predict paths that were left out of a fit, and tell the errors
    Validate(validate::ValidateArguments),
}

/// Answers.
pub(crate) fn model(arguments: &ModelArguments) -> Result<(), UserError> {
    match &arguments.command {
        None => example::example(),
        Some(ModelCommand::Latency(arguments)) => latency::latency(arguments),
        Some(ModelCommand::Average(arguments)) => average::average(arguments),
        Some(ModelCommand::Pattern(arguments)) => pattern::pattern(arguments),
        Some(ModelCommand::Crossover(arguments)) => crossover::crossover(arguments),
        Some(ModelCommand::Sensitivity(arguments)) => sensitivity::sensitivity(arguments),
        Some(ModelCommand::Plot(arguments)) => plot::plot(arguments),
        Some(ModelCommand::Simulate(arguments)) => simulate::answer(arguments),
        Some(ModelCommand::Fit(arguments)) => fit::answer(arguments),
        Some(ModelCommand::Validate(arguments)) => validate::answer(arguments),
    }
}

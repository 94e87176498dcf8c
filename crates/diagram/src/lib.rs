//! Diagrams of workflows: a layout of the steps ([`Layout`]), drawn for a terminal ([`draw_text`]) or as SVG
//! ([`draw_svg`]), and the words that both use for a step ([`describe`]).
//!
//! Pure, as the core is: what is drawn goes wherever the caller sends it.

mod describe;
mod layout;
mod svg;
mod text;

pub use describe::{StepDescription, describe};
pub use layout::{Edge, EdgeKind, Layout, PassingLine, PlacedStep, STEP_WIDTH};
pub use svg::{StepStatus, draw_run_svg, draw_svg};
pub use text::draw_text;

/// At most so many characters, the last of which then says that there were more.
fn clip(text: &str, len_max: usize) -> String {
    // Control characters and line breaks would break the diagram.
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let mut clipped: String = text.chars().take(len_max).map(plain).collect();
    if text.chars().count() > len_max {
        clipped.pop();
        clipped.push('…');
    }
    clipped
}

//! A workflow as people see it: in a terminal ([`text`]), as an SVG ([`svg`]), and what both say of a step.

mod lanes;
mod svg;
mod words;

pub use lanes::text;
pub use svg::{Standing, svg, svg_of_run};
pub use words::{Told, told};

/// At most so many characters, the last of which then says that there were more.
fn clip(text: &str, len_max: usize) -> String {
    // What is not one line, or no letter at all, would break the picture.
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let mut clipped: String = text.chars().take(len_max).map(plain).collect();
    if text.chars().count() > len_max {
        clipped.pop();
        clipped.push('…');
    }
    clipped
}

#[cfg(test)]
mod tests;

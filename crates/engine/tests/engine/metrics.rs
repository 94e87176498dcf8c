//! What can be scraped: the page of a server that has worked, and everything that is written over its names.

mod dashboards;
mod names;
mod page;

//! Asks for a job and prints what came of it: `cargo run -p reveille-client --example submit -- job.echo '{"x": 1}'`.

use reveille_client::{Client, NewJob};
use std::env;
use std::error::Error;
use std::time::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    let topic = env::args().nth(1).ok_or("name a topic, such as job.echo")?;
    let context = env::args().nth(2).unwrap_or_else(|| "{}".to_owned());
    let url = env::var("REVEILLE_URL").unwrap_or_else(|_| "http://127.0.0.1:8080".to_owned());
    let client = Client::new(&url, env::var("REVEILLE_KEY")?)?;

    let job = NewJob::new(topic).context(serde_json::from_str(&context)?);
    let submitted = client.jobs().submit(&job)?;
    let job = client.jobs().wait(&submitted.job_id, Duration::from_mins(1))?;
    println!("{} by {}: {}", job.state, job.worker_id, job.result);
    Ok(())
}

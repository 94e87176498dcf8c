//! A kernel at the other end of a gRPC connection.

use crate::cap::safety_kernel_client::SafetyKernelClient;
use crate::cordum::output_policy_service_client::OutputPolicyServiceClient;
use crate::{Kernel, NoAnswer, OutputQuestion, OutputScan, Purpose, RESULT_LEN_MAX, convert};
use bytes::Bytes;
use reveille_core::breaker;
use reveille_core::policy::Verdict;
use reveille_core::request::Request;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Uri};
use tonic::{Code, Status};

/// How a kernel that hangs is told from one that thinks.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
const CONNECT_WITHIN: Duration = Duration::from_millis(breaker::TIMEOUT_MS as u64);

/// Where the kernel is, and how its connection is protected.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KernelTarget {
    /// `host:port`, or a URL.
    pub address: String,
    /// A PEM file; without one the system's authorities are trusted.
    pub tls_ca: Option<PathBuf>,
    pub tls_required: bool,
    /// Whether plain text may leave this machine.
    pub insecure: bool,
    /// Sent as `x-api-key`, for a kernel that asks for one: another Reveille does.
    pub key: Option<KernelKey>,
}

/// A key that no log shows.
#[derive(Clone, PartialEq, Eq)]
pub struct KernelKey(String);

impl KernelKey {
    pub fn new(key: String) -> Self {
        Self(key)
    }
}

impl fmt::Debug for KernelKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Key")
    }
}

/// Why a kernel cannot be asked as it was configured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadTarget {
    #[error("safety.address {0:?} is not host:port or a URL: {1}")]
    Address(String, String),
    #[error("safety.tls_ca: {0}: {1}")]
    Authority(PathBuf, String),
    #[error("safety.key holds a character that no key has")]
    Key,
    #[error("safety.tls_required and safety.insecure contradict each other")]
    Contradiction,
    #[error("safety.address {0:?} asks for plain text, but safety.tls_required is set")]
    PlainText(String),
    #[error(
        "safety.address {0:?} would be asked in plain text beyond this machine: \
         set safety.tls_ca or safety.tls_required, or allow it with safety.insecure"
    )]
    Exposed(String),
}

/// A handle; clones share one connection, which is made when it is first needed and again when it breaks.
#[derive(Clone)]
pub struct GrpcKernel {
    address: String,
    channel: Channel,
    key: Option<MetadataValue<Ascii>>,
}

impl GrpcKernel {
    /// Connects lazily: a kernel that is away does not keep the server from starting.
    pub fn new(target: &KernelTarget) -> Result<Self, BadTarget> {
        let mut endpoint = target
            .endpoint()?
            .connect_timeout(CONNECT_WITHIN)
            .http2_keep_alive_interval(KEEP_ALIVE)
            .keep_alive_timeout(KEEP_ALIVE)
            .keep_alive_while_idle(true);
        if endpoint.uri().scheme_str() == Some("https") {
            endpoint = endpoint.tls_config(target.tls()?).map_err(|error| target.bad(&error))?;
        }
        let key = target.key.as_ref().map(|key| key.0.parse()).transpose();
        let mut key: Option<MetadataValue<Ascii>> = key.map_err(|_| BadTarget::Key)?;
        if let Some(key) = &mut key {
            key.set_sensitive(true);
        }
        Ok(Self { address: target.address.clone(), channel: endpoint.connect_lazy(), key })
    }

    fn with_key<T>(&self, message: T) -> tonic::Request<T> {
        let mut request = tonic::Request::new(message);
        if let Some(key) = &self.key {
            request.metadata_mut().insert("x-api-key", key.clone());
        }
        request
    }
}

impl KernelTarget {
    fn endpoint(&self) -> Result<Endpoint, BadTarget> {
        if self.tls_required && self.insecure {
            return Err(BadTarget::Contradiction);
        }
        let wants_tls = self.tls_required || self.tls_ca.is_some();
        let url = match (self.address.contains("://"), wants_tls) {
            (true, _) => self.address.clone(),
            (false, true) => format!("https://{}", self.address),
            (false, false) => format!("http://{}", self.address),
        };
        let uri: Uri = url.parse().map_err(|error| self.bad(&error))?;
        if uri.port().is_none() {
            return Err(self.bad(&"it names no port"));
        }
        match uri.scheme_str() {
            Some("https") => {}
            Some("http") if wants_tls => return Err(BadTarget::PlainText(self.address.clone())),
            Some("http") if self.insecure || is_this_machine(&uri) => {}
            Some("http") => return Err(BadTarget::Exposed(self.address.clone())),
            _ => return Err(self.bad(&"only http and https are spoken")),
        }
        Ok(Endpoint::from(uri))
    }

    fn tls(&self) -> Result<ClientTlsConfig, BadTarget> {
        let Some(path) = &self.tls_ca else { return Ok(ClientTlsConfig::new().with_native_roots()) };
        let pem =
            std::fs::read(path).map_err(|error| BadTarget::Authority(path.clone(), error.to_string()))?;
        Ok(ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem)))
    }

    fn bad(&self, problem: &dyn fmt::Display) -> BadTarget {
        BadTarget::Address(self.address.clone(), problem.to_string())
    }
}

fn is_this_machine(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or("").trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[async_trait::async_trait]
impl Kernel for GrpcKernel {
    fn address(&self) -> &str {
        &self.address
    }

    async fn judge(
        &self,
        request: &Request,
        input: Option<&Bytes>,
        purpose: Purpose,
    ) -> Result<Verdict, NoAnswer> {
        let question = self.with_key(convert::question(request, input));
        let mut kernel = SafetyKernelClient::new(self.channel.clone());
        let answer = match purpose {
            Purpose::Check => kernel.check(question).await,
            Purpose::Evaluate => kernel.evaluate(question).await,
            Purpose::Simulate => kernel.simulate(question).await,
            Purpose::Explain => kernel.explain(question).await,
        };
        Ok(convert::verdict(answer.map_err(no_answer)?.into_inner()))
    }

    async fn scan_output(&self, result: OutputQuestion<'_>) -> Result<OutputScan, NoAnswer> {
        if result.content.as_ref().is_some_and(|content| content.len() > RESULT_LEN_MAX) {
            return Err(NoAnswer::Refused(format!("the result is longer than {RESULT_LEN_MAX} bytes")));
        }
        let stage = convert::stage(&result);
        let mut service =
            OutputPolicyServiceClient::new(self.channel.clone()).max_encoding_message_size(usize::MAX);
        let answer =
            service.check_output(self.with_key(convert::result(&result))).await.map_err(no_answer)?;
        Ok(convert::look(answer.into_inner(), stage))
    }
}

#[allow(clippy::needless_pass_by_value, reason = "as `map_err` hands it over")]
fn no_answer(status: Status) -> NoAnswer {
    let words: String = status.message().chars().take(200).collect();
    match status.code() {
        Code::Unavailable => NoAnswer::Down(format!("the safety kernel cannot be reached: {words}")),
        Code::InvalidArgument
        | Code::OutOfRange
        | Code::ResourceExhausted
        | Code::Unimplemented
        | Code::Unauthenticated
        | Code::PermissionDenied => NoAnswer::Refused(format!(
            "the safety kernel refuses the question ({:?}): {words}",
            status.code()
        )),
        code => NoAnswer::Down(format!("the safety kernel answered {code:?}: {words}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_stays_on_this_machine_unless_it_is_allowed_to_leave() {
        let target = |address: &str| KernelTarget { address: address.to_owned(), ..KernelTarget::default() };
        let url = |target: KernelTarget| target.endpoint().map(|endpoint| endpoint.uri().to_string());
        assert_eq!(url(target("localhost:50051")).unwrap(), "http://localhost:50051/");
        assert_eq!(url(target("[::1]:50051")).unwrap(), "http://[::1]:50051/");
        assert_eq!(url(target("https://kernel:50051")).unwrap(), "https://kernel:50051/");
        let required = |address| KernelTarget { tls_required: true, ..target(address) };
        assert_eq!(url(required("kernel:50051")).unwrap(), "https://kernel:50051/");
        let insecure = |address| KernelTarget { insecure: true, ..target(address) };
        assert_eq!(url(insecure("kernel:50051")).unwrap(), "http://kernel:50051/");

        let error = |target: KernelTarget| url(target).unwrap_err();
        assert_eq!(error(target("kernel:50051")), BadTarget::Exposed("kernel:50051".to_owned()));
        assert_eq!(error(required("http://kernel:1")), BadTarget::PlainText("http://kernel:1".to_owned()));
        assert_eq!(error(KernelTarget { insecure: true, ..required("kernel:1") }), BadTarget::Contradiction);
        for address in ["", "kernel", "http://", "ftp://kernel:21", "a b:1"] {
            assert!(matches!(error(target(address)), BadTarget::Address(..)), "{address}");
        }
    }

    #[test]
    fn a_missing_authority_is_named() {
        let tls_ca = Some(PathBuf::from("/no/such/ca.pem"));
        let target = KernelTarget { address: "kernel:1".to_owned(), tls_ca, ..KernelTarget::default() };
        let error = GrpcKernel::new(&target).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains("/no/such/ca.pem"), "{error}");
    }
}

//! How often each quota of a tenant refused something. Tenants are not told apart: whoever holds keys could fill the
//! memory with their names.

use super::MetricsPage;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use reveille_core::quota::TenantQuota;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct QuotaLabel {
    quota: &'static str,
}

pub(crate) struct QuotaMetrics {
    exceeded: Family<QuotaLabel, Counter>,
}

impl QuotaMetrics {
    pub(super) fn list(page: &mut MetricsPage) -> Self {
        let metrics = Self { exceeded: page.list("quota_exceeded", "What quotas of tenants refused") };
        for quota in TenantQuota::ALL {
            metrics.of(*quota);
        }
        metrics
    }

    pub fn exceeded(&self, quota: TenantQuota) {
        self.of(quota).inc();
    }

    fn of(&self, quota: TenantQuota) -> Counter {
        self.exceeded.get_or_create(&QuotaLabel { quota: quota.as_str() }).clone()
    }
}

//! Delegations: by id, by who gave them, and those that are under way.

use super::{NOW, delegation, workspace, write};
use crate::{Change, Roster};
use reveille_core::id::{JobId, TenantId};
use reveille_core::presence::delegation::{Delegation, DelegationStatus};

pub async fn run(roster: &dyn Roster) {
    a_delegation_is_found_by_id_as_it_was_last_written(roster).await;
    what_a_workspace_gave_comes_newest_first(roster).await;
    open_delegations_are_jobs_that_have_not_ended(roster).await;
    an_id_belongs_to_the_tenant_that_had_it_first(roster).await;
}

pub async fn a_delegation_is_found_by_id_as_it_was_last_written(roster: &dyn Roster) {
    let source = workspace("suite-delegation", "a");
    let first = delegation(&source, "1", DelegationStatus::Pending, NOW);
    let last = Delegation {
        status: DelegationStatus::Failed,
        error: Some("it broke".to_owned()),
        response_preview: Some("…".to_owned()),
        updated_at: NOW + 5,
        ..first.clone()
    };
    assert_eq!(roster.delegation(&first.id).await.unwrap(), None);
    for given in [&first, &last, &last] {
        write(roster, Change::Delegation(given.clone())).await;
        assert_eq!(roster.delegation(&first.id).await.unwrap().as_ref(), Some(given));
    }
}

pub async fn what_a_workspace_gave_comes_newest_first(roster: &dyn Roster) {
    let (source, other) = (workspace("suite-given", "a"), workspace("suite-given", "b"));
    let given = |name, at| delegation(&source, name, DelegationStatus::Completed, at);
    let all = [given("a", NOW + 2), given("z", NOW + 1), given("y", NOW + 1), given("b", NOW)];
    for index in [2, 0, 3, 1, 0] {
        write(roster, Change::Delegation(all[index].clone())).await;
    }
    write(roster, Change::Delegation(delegation(&other, "a", DelegationStatus::Pending, NOW))).await;
    assert_eq!(roster.delegations_of(&source.id, 10).await.unwrap(), all);
    assert_eq!(roster.delegations_of(&source.id, 3).await.unwrap(), all[..3]);
}

pub async fn open_delegations_are_jobs_that_have_not_ended(roster: &dyn Roster) {
    use DelegationStatus::{Completed, Dispatched, Failed, InProgress, Pending, Received};
    let source = workspace("suite-open", "a");
    let mut open = Vec::new();
    for (number, status) in [Pending, Dispatched, Received, InProgress, Completed, Failed].iter().enumerate()
    {
        let job = delegation(&source, &number.to_string(), *status, NOW);
        let told =
            Delegation { is_job: false, ..delegation(&source, &format!("told-{number}"), *status, NOW) };
        roster.write(vec![Change::Delegation(job.clone()), Change::Delegation(told)]).await.unwrap();
        if !status.is_final() {
            open.push(job);
        }
    }
    for limit in [1, 3, 1000] {
        assert_eq!(all_open(roster, "suite-open", limit).await, open, "in pages of {limit}");
    }
    let ended = Delegation { status: Completed, ..open.remove(1) };
    write(roster, Change::Delegation(ended)).await;
    assert_eq!(all_open(roster, "suite-open", 2).await, open);
}

pub async fn an_id_belongs_to_the_tenant_that_had_it_first(roster: &dyn Roster) {
    let mine = delegation(&workspace("suite-held", "a"), "1", DelegationStatus::Pending, NOW);
    let theirs = Delegation {
        tenant: TenantId::known("suite-thief"),
        status: DelegationStatus::Failed,
        ..mine.clone()
    };
    roster.write(vec![Change::Delegation(mine.clone()), Change::Delegation(theirs)]).await.unwrap();
    assert_eq!(roster.delegation(&mine.id).await.unwrap(), Some(mine));
}

async fn all_open(roster: &dyn Roster, tenant: &str, limit: usize) -> Vec<Delegation> {
    let mut open: Vec<Delegation> = Vec::new();
    loop {
        let after: Option<JobId> = open.last().map(|given| given.id.clone());
        let page = roster.open_delegations(after, limit).await.unwrap();
        assert!(page.len() <= limit);
        if page.is_empty() {
            break;
        }
        open.extend(page);
    }
    assert!(open.is_sorted_by(|one, other| one.id < other.id));
    open.retain(|given| given.tenant.as_str() == tenant);
    open
}

package main

// The sections of INTERFACE.md on states and transitions.
func states() []section {
	return []section{
		{"Withdrawal status", []statement{
			said(
				"PENDING: the process is ongoing or awaiting further actions.",
				inClient("WithdrawalPending", `"PENDING"`, `"pending"`, "TestClient_Withdrawal_status/pending"),
				inClient("WithdrawalStatus.Terminal", `s == WithdrawalCompleted`, `s != ""`, "TestClient_WaitWithdrawal/it is pending for a while"),
				inStandIn("pending", `"PENDING"`, `"pending"`, "TestServer_seeded_withdrawals"),
			),
			said(
				"FAILED: the process met an issue and could not be completed.",
				inClient("WithdrawalFailed", `"FAILED"`, `"failed"`, "TestClient_Withdrawal_status/failed"),
				inClient("Withdrawal.verdict", `== WithdrawalFailed`, `== WithdrawalPending`, "TestClient_WaitWithdrawal_Failed"),
			),
			said(
				"COMPLETED: the process has been successfully finalized.",
				inClient("WithdrawalCompleted", `"COMPLETED"`, `"completed"`, "TestClient_Withdrawal_status/completed"),
				inClient("Withdrawal.verdict", `== WithdrawalFailed`, `== WithdrawalCompleted`, "TestClient_WaitWithdrawal/it is completed at once"),
				inStandIn("completed", `"COMPLETED"`, `"completed"`, "TestServer_seeded_withdrawals"),
			),
			notShown(
				"Transitions between withdrawal statuses", "none is ruled out: each answer is taken as it is, and one that is not listed is kept and waited through.",
				inClient("poller.poll", `!seen.equal(p.progress.Last)`, `seen.Status != WithdrawalPending`, "TestClient_WatchWithdrawal"),
				inClient("WithdrawalStatus.Terminal", `s == WithdrawalFailed || s == WithdrawalCompleted`, `s != WithdrawalPending`,
					"TestClient_WaitWithdrawal/statuses that nobody knows are waited through"),
				inStandIn("Server.SetWithdrawalStatus", `w.Status = status`, `w.Status = completed`, "TestServer_SetWithdrawalStatus"),
			),
		}},
		{"Invoice states", []statement{
			notShown(
				"States and transitions of an invoice", "the client has no state of an invoice; Text finds what the service calls so in its answer.",
				inClient("Invoice.Text", `kind == '"' || kind == '0'`, `kind == '0'`, "TestInvoice_Text/at the top"),
			),
		}},
	}
}

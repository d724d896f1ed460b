// The panels of the dashboard, from the outside to the inside. $job is the scrape job, $__rate_interval a time that fits
// the step of the graph.

export interface Panel {
  readonly title: string;
  /** Its meaning, and normal values: behind the i of the panel. */
  readonly about: string;
  readonly unit: 'short' | 'reqps' | 's' | 'percentunit' | 'bytes' | 'ops';
  readonly queries: readonly (readonly [legend: string, expression: string])[];
}

export interface Row {
  readonly title: string;
  readonly panels: readonly Panel[];
}

const rate = (metric: string, labels = '') =>
  `rate(${metric}{job="$job"${labels}}[$__rate_interval])`;
const sumBy = (by: string, metric: string, labels = '') =>
  `sum by (${by}) (${rate(metric, labels)})`;
const quantile = (share: number, by: string, histogram: string, labels = '') =>
  `histogram_quantile(${share}, sum by (${by}) (${rate(`${histogram}_bucket`, labels)}))`;

export const ROWS: readonly Row[] = [
  {
    title: 'Calls',
    panels: [
      {
        title: 'Requests',
        about:
          'All requests by status. 401 before each login and 404 for ended sessions are normal; 5xx are not.',
        unit: 'reqps',
        queries: [['{{status_code}}', sumBy('status_code', 'http_requests_total')]],
      },
      {
        title: 'Time of a call',
        about: 'How long POST /mcp takes, with the tool or the server behind it.',
        unit: 's',
        queries: [0.5, 0.95, 0.99].map((share) => [
          `p${share * 100}`,
          quantile(share, 'le', 'http_request_duration_seconds', ',route="/mcp"'),
        ]),
      },
      {
        title: 'MCP requests',
        about: 'By method, and by the era of the protocol that the client speaks.',
        unit: 'reqps',
        queries: [['{{method}} ({{era}})', sumBy('method, era', 'mcp_requests_total')]],
      },
      {
        title: 'Sessions',
        about: 'Open ones: the number in the store, which all replicas share.',
        unit: 'short',
        queries: [['open', 'max(mcp_sessions_active{job="$job"})']],
      },
      {
        title: 'Sessions that begin and end',
        about: 'Most clients never end their sessions: they expire.',
        unit: 'ops',
        queries: [['{{status}}', sumBy('status', 'mcp_sessions_total')]],
      },
      {
        title: 'Refused by overload',
        about: 'Calls that got 503 because more arrived than a process could serve. Normally none.',
        unit: 'reqps',
        queries: [['{{instance}}', sumBy('instance', 'http_overload_refusals_total')]],
      },
    ],
  },
  {
    title: 'Tools',
    panels: [
      {
        title: 'Calls of tools',
        about: 'The ten most frequently called tools.',
        unit: 'reqps',
        queries: [['{{tool}}', `topk(10, ${sumBy('tool', 'mcp_tool_invocations_total')})`]],
      },
      {
        title: 'Calls that fail',
        about:
          'error: reported by the tool itself. exception: the tool threw an error; the log has the stack.',
        unit: 'reqps',
        queries: [
          [
            '{{tool}}: {{status}}',
            sumBy('tool, status', 'mcp_tool_invocations_total', ',status!="success"'),
          ],
        ],
      },
      {
        title: 'Time of tools (p95)',
        about: 'The ten slowest tools.',
        unit: 's',
        queries: [
          ['{{tool}}', `topk(10, ${quantile(0.95, 'tool, le', 'mcp_tool_duration_seconds')})`],
        ],
      },
      {
        title: 'Approvals',
        about:
          'Calls that need approval before they run: by a form in the client, on the page, or from operators.',
        unit: 'ops',
        queries: [['{{ask}}: {{outcome}}', sumBy('ask, outcome', 'mcp_approvals_total')]],
      },
      {
        title: 'Waiting for operators',
        about: 'Calls that an operator has to approve or refuse, on the page /admin.',
        unit: 'short',
        queries: [['waiting', 'max(mcp_approvals_waiting{job="$job"})']],
      },
    ],
  },
  {
    title: 'Servers behind the gateway',
    panels: [
      {
        title: 'Reachable',
        about: '1 while at least one replica reaches the server, 0 while none does.',
        unit: 'short',
        queries: [['{{server}}', 'max by (server) (upstream_up{job="$job"})']],
      },
      {
        title: 'Requests to servers',
        about: 'By how they ended. unavailable, timeout and invalid are failures of the server.',
        unit: 'reqps',
        queries: [['{{server}}: {{status}}', sumBy('server, status', 'upstream_requests_total')]],
      },
      {
        title: 'Time of servers (p95)',
        about: 'Includes the time of questions that a server asks during a call.',
        unit: 's',
        queries: [
          ['{{server}}', quantile(0.95, 'server, le', 'upstream_request_duration_seconds')],
        ],
      },
      {
        title: 'Processes',
        about: 'Processes of servers that are programs.',
        unit: 'short',
        queries: [['{{server}}', 'sum by (server) (upstream_processes{job="$job"})']],
      },
      {
        title: "Users' connections",
        about:
          "Logins of users at servers (auth: oauth). login_needed: the server's login has ended, and the user has to connect again.",
        unit: 'short',
        queries: [
          ['{{server}}: {{state}}', 'max by (server, state) (upstream_connections{job="$job"})'],
        ],
      },
      {
        title: 'Renewals of connections',
        about:
          'Responses of token endpoints of servers. failed: no valid response; the connection stays, and the gateway tries again.',
        unit: 'ops',
        queries: [
          ['{{server}}: {{outcome}}', sumBy('server, outcome', 'upstream_token_refreshes_total')],
        ],
      },
      {
        title: 'Guards',
        about:
          'Messages that guards changed or refused. failed: the guard itself failed; the log says why, and onError what followed.',
        unit: 'ops',
        queries: [
          [
            '{{guard}}: {{outcome}} on {{on}}',
            sumBy('guard, outcome, on', 'guard_decisions_total'),
          ],
        ],
      },
      {
        title: 'Time of a guard (p99)',
        about: 'The time that it adds to each call that it checks.',
        unit: 's',
        queries: [['p99 {{guard}}', quantile(0.99, 'le, guard', 'guard_duration_seconds')]],
      },
      {
        title: 'Hidden by postern.lock',
        about:
          'Entries that a server lists and no one has approved. changed: it was approved with different content.',
        unit: 'ops',
        queries: [
          [
            '{{server}}: {{kind}} {{reason}}',
            sumBy('server, kind, reason', 'upstream_lock_refusals_total'),
          ],
        ],
      },
    ],
  },
  {
    title: 'Who is let in',
    panels: [
      {
        title: 'Tokens',
        about: 'missing_token before each login and expired_token after an hour or so are normal.',
        unit: 'reqps',
        queries: [['{{result}}', sumBy('result', 'auth_attempts_total')]],
      },
      {
        title: 'Time of a token check (p99)',
        about: 'Well below a millisecond. Longer: the process has too little CPU.',
        unit: 's',
        queries: [['p99', quantile(0.99, 'le', 'auth_token_validation_duration_seconds')]],
      },
      {
        title: "The provider's key set",
        about: 'Fetches, and look-ups that found no key.',
        unit: 'ops',
        queries: [
          ['fetched: {{status}}', sumBy('status', 'jwks_refresh_total')],
          ['key found', sumBy('job', 'jwks_cache_hits_total')],
          ['key unknown', sumBy('job', 'jwks_cache_misses_total')],
        ],
      },
      {
        title: 'Logins',
        about: 'With gateway tokens. Logins that end by age are not counted.',
        unit: 'ops',
        queries: [['{{status}}', sumBy('status', 'oauth_grants_total')]],
      },
      {
        title: 'Checks whether users may still log in',
        about:
          'The provider is contacted at refreshes, once every OAUTH_RENEWAL_SECONDS for each login. failed: it could not be reached.',
        unit: 'ops',
        queries: [['{{status}}', sumBy('status', 'oauth_grant_renewals_total')]],
      },
      {
        title: 'Logouts at the provider',
        about:
          'Logout tokens that the provider sent. refused: invalid, or not from the provider; the log says which. failed: it has to be sent again.',
        unit: 'ops',
        queries: [['{{status}}', sumBy('status', 'oauth_logout_tokens_total')]],
      },
    ],
  },
  {
    title: 'Store and limits',
    panels: [
      {
        title: 'Operations of the store',
        about: 'Redis, or the embedded store. Each call is one admit.',
        unit: 'ops',
        queries: [['{{operation}}', sumBy('operation', 'redis_operations_total')]],
      },
      {
        title: 'Operations that fail',
        about: 'Normally none.',
        unit: 'ops',
        queries: [
          ['{{operation}}', sumBy('operation', 'redis_operations_total', ',status!="success"')],
        ],
      },
      {
        title: 'Time of the store (p99)',
        about: 'Every call waits for it once.',
        unit: 's',
        queries: [
          ['{{operation}}', quantile(0.99, 'operation, le', 'redis_operation_duration_seconds')],
        ],
      },
      {
        title: 'Rate limits reached',
        about:
          'ip: one address. user: one user. global: all callers together, so everyone is refused.',
        unit: 'reqps',
        queries: [['{{endpoint}}: {{scope}}', sumBy('endpoint, scope', 'rate_limit_hits_total')]],
      },
      {
        title: 'Requests that got 429',
        about: 'Their share, by endpoint.',
        unit: 'percentunit',
        queries: [
          [
            '{{endpoint}}',
            `${sumBy('endpoint', 'http_request_rate_limit_requests_total', ',limited="true"')} / ${sumBy('endpoint', 'http_request_rate_limit_requests_total')}`,
          ],
        ],
      },
      {
        title: 'Audit log',
        about:
          'Lines by outcome. error: the line is lost or, with AUDIT_REQUIRED, the call failed.',
        unit: 'ops',
        queries: [['{{event}}: {{status}}', sumBy('event, status', 'audit_lines_total')]],
      },
      {
        title: 'Messages between replicas that were dropped',
        about:
          'Normally none. unreadable: different OAUTH_STATE_SECRET. stale: clocks. repeated: an attack.',
        unit: 'ops',
        queries: [['{{reason}}', sumBy('reason', 'mcp_replica_messages_dropped_total')]],
      },
    ],
  },
  {
    title: 'Processes',
    panels: [
      {
        title: 'CPU',
        about: 'One process uses one CPU for its work. Near 1: add replicas, or WORKERS.',
        unit: 'percentunit',
        queries: [['{{instance}}', sumBy('instance', 'process_cpu_seconds_total')]],
      },
      {
        title: 'Memory',
        about: 'Resident memory of the process, and the JavaScript heap in it.',
        unit: 'bytes',
        queries: [
          ['{{instance}}', 'process_resident_memory_bytes{job="$job"}'],
          ['{{instance}} heap', 'nodejs_heap_size_used_bytes{job="$job"}'],
        ],
      },
      {
        title: 'Event loop (p99)',
        about: 'How long all requests wait because the process is computing.',
        unit: 's',
        queries: [['{{instance}}', 'nodejs_eventloop_lag_p99_seconds{job="$job"}']],
      },
      {
        title: 'Open files',
        about: 'Share of the files that the process may open. Each connection counts as one.',
        unit: 'percentunit',
        queries: [['{{instance}}', 'process_open_fds{job="$job"} / process_max_fds{job="$job"}']],
      },
      {
        title: 'Starts',
        about: 'In the last hour.',
        unit: 'short',
        queries: [['{{instance}}', 'changes(process_start_time_seconds{job="$job"}[1h])']],
      },
    ],
  },
];

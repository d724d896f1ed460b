// Sessions, streams and calls of /mcp.
import { anyText, flag, integer, ONE_YEAR_SECONDS } from '../rules.ts';
import { defineSetting, type Read, readAll, type ValuesOf } from '../setting.ts';

const sessionSettings = {
  ttlSeconds: defineSetting('MCP_SESSION_TTL_SECONDS', integer(60, ONE_YEAR_SECONDS), {
    default: { value: 86_400 },
    summary: 'Seconds until a session without requests ends.',
    details: 'Every accepted request starts them again.',
  }),
  maxPerUser: defineSetting('MCP_USER_SESSIONS_MAX', integer(0, 1_000_000), {
    default: { value: 1000 },
    summary: 'The most sessions of one user; 0 for no limit.',
    details: 'Opening one more ends the session that would expire first.',
  }),
  keyPrefix: defineSetting('MCP_SESSION_KEY_PREFIX', anyText, {
    default: { value: 'mcp:session:' },
    summary: 'What the keys of sessions in the store begin with.',
  }),
};

const callSettings = {
  streams: defineSetting('MCP_STREAMS', flag, {
    default: { value: false },
    summary: 'Lets clients keep a stream open and subscribe to resources.',
    details: 'With `GET /mcp`, or `subscriptions/listen`. Each stream holds a connection.',
  }),
  maxCallsPerUser: defineSetting('MCP_USER_CALLS_MAX', integer(0, 1_000_000), {
    default: { value: 64 },
    summary: 'The most long calls of one user at the same time; 0 for no limit.',
    details:
      'Calls count once they have run for a second. Event streams do not count. One more call gets a 429.',
  }),
  streamAfterMs: defineSetting('STREAM_AFTER_MS', integer(0, 3_600_000), {
    default: { value: 10_000 },
    summary:
      'Milliseconds after which the answer to a running call becomes an event stream; 0 for never.',
    details:
      'This keeps proxies from closing a silent connection: set it below their [idle time-outs](operations/network.md#idle-time-outs). It needs a client that accepts streams, and no session before 2025-03-26. All others get JSON at the end, as for short calls.',
  }),
};

const taskSettings = {
  taskTtlSeconds: defineSetting('MCP_TASK_TTL_SECONDS', integer(60, 604_800), {
    default: { value: 3600 },
    summary: 'Seconds that a task may run, and that its result is kept afterwards.',
    details: 'Tasks are calls whose result the client fetches later, in the stateless era.',
  }),
  maxTasksPerUser: defineSetting('MCP_USER_TASKS_MAX', integer(0, 8192), {
    default: { value: 32 },
    summary:
      'The most tasks of one user that run at the same time, at all replicas; 0 for no limit.',
    details: 'One more gets a 429. Tasks that run at one replica count as calls, too.',
  }),
};

export const mcpSettings = { ...sessionSettings, ...callSettings, ...taskSettings };

export type TasksConfig = ValuesOf<typeof taskSettings>;

export type SessionsConfig = ValuesOf<typeof sessionSettings>;

export interface McpConfig extends ValuesOf<typeof callSettings> {
  readonly sessions: SessionsConfig;
  readonly tasks: TasksConfig;
}

export const readMcpConfig = (read: Read): McpConfig => ({
  sessions: readAll(sessionSettings, read),
  tasks: readAll(taskSettings, read),
  ...readAll(callSettings, read),
});

// Sessions, streams and calls of /mcp.
import { anyText, flag, integer, ONE_YEAR_SECONDS } from '../rules.ts';
import { defineSetting, type Read } from '../setting.ts';

export interface McpConfig {
  readonly sessions: SessionsConfig;
  /** GET /mcp and subscriptions: streams for what the service has to say by itself. */
  readonly streams: boolean;
  /** Calls of one user that run for over a second; 0 for any number. */
  readonly maxCallsPerUser: number;
}

export interface SessionsConfig {
  /** Of the keys in the store. */
  readonly keyPrefix: string;
  readonly ttlSeconds: number;
  /** 0 for any number. */
  readonly maxPerUser: number;
}

export const mcpSettings = {
  sessionTtlSeconds: defineSetting({
    variable: 'MCP_SESSION_TTL_SECONDS',
    rule: integer(60, ONE_YEAR_SECONDS),
    default: { value: 86_400 },
    summary: 'Seconds until a session without requests ends.',
    details: 'Every accepted request starts them again.',
  }),
  maxSessionsPerUser: defineSetting({
    variable: 'MCP_USER_SESSIONS_MAX',
    rule: integer(0, 1_000_000),
    default: { value: 1000 },
    summary: 'The most sessions of one user; 0 for no limit.',
    details: 'Opening one more ends the session that would expire first.',
  }),
  sessionKeyPrefix: defineSetting({
    variable: 'MCP_SESSION_KEY_PREFIX',
    rule: anyText,
    default: { value: 'mcp:session:' },
    summary: 'What the keys of sessions in the store begin with.',
  }),
  streams: defineSetting({
    variable: 'MCP_STREAMS',
    rule: flag,
    default: { value: false },
    summary: 'Lets clients keep a stream open and subscribe to resources.',
    details: 'With `GET /mcp`, or `subscriptions/listen`. Each stream holds a connection.',
  }),
  maxCallsPerUser: defineSetting({
    variable: 'MCP_USER_CALLS_MAX',
    rule: integer(0, 1_000_000),
    default: { value: 64 },
    summary: 'The most long calls of one user at the same time; 0 for no limit.',
    details:
      'Calls count once they have run for a second. Event streams do not count. One more call gets a 429.',
  }),
};

export const readMcpConfig = (read: Read): McpConfig => ({
  sessions: {
    keyPrefix: read(mcpSettings.sessionKeyPrefix),
    ttlSeconds: read(mcpSettings.sessionTtlSeconds),
    maxPerUser: read(mcpSettings.maxSessionsPerUser),
  },
  streams: read(mcpSettings.streams),
  maxCallsPerUser: read(mcpSettings.maxCallsPerUser),
});

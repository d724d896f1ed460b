// Sessions, streams and calls of /mcp.

import { ONE_YEAR_SECONDS } from '../durations.ts';
import { anyText, flag, integer } from '../rules.ts';
import { fixed, type Read, setting } from '../setting.ts';

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
  sessionKeyPrefix: setting({
    variable: 'MCP_SESSION_KEY_PREFIX',
    rule: anyText,
    default: fixed('mcp:session:'),
    help: 'Prefix of the keys of MCP sessions.',
  }),
  sessionTtlSeconds: setting({
    variable: 'MCP_SESSION_TTL_SECONDS',
    rule: integer(60, ONE_YEAR_SECONDS),
    default: fixed(86_400),
    help: 'Seconds a session lives without a request; every accepted request starts them anew.',
  }),
  maxSessionsPerUser: setting({
    variable: 'MCP_USER_SESSIONS_MAX',
    rule: integer(0, 1_000_000),
    default: fixed(1000),
    help: 'Most sessions that one user may have. Opening one more ends the session that expires first. 0 means no limit.',
  }),
  streams: setting({
    variable: 'MCP_STREAMS',
    rule: flag,
    default: fixed(false),
    help: 'true lets clients keep a stream open (GET /mcp, or subscriptions/listen) and subscribe to resources that tell when they change. Each stream holds a connection.',
  }),
  maxCallsPerUser: setting({
    variable: 'MCP_USER_CALLS_MAX',
    rule: integer(0, 1_000_000),
    default: fixed(64),
    help: 'Most calls of one user that may be running for over a second at the same time, event streams aside; one more is answered with 429. 0 means no limit.',
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

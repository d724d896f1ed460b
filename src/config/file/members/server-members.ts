// The members of a server in the configuration file: each once, for parsing and for the JSON Schema.
import { httpUrl, integer, oneOf, systemUser } from '../../rules.ts';
import { warnOfBareVariable } from '../shapes/bare-variable.ts';
import { record } from '../shapes/collection.ts';
import { defineMember, type Member } from '../shapes/object.ts';
import { freeText, text, trueOrFalse, wholeNumber } from '../shapes/scalar.ts';
import { argumentList } from './argument-list.ts';
import { authShape } from './auth-members.ts';
import { checkHeaderName, headerValue } from './header-rules.ts';
import { timeoutRule } from './timeout-rule.ts';
import { toolsShape } from './tools-members.ts';

const TYPES = ['http', 'streamableHttp', 'streamable-http', 'sse', 'stdio'] as const;
const ERAS = ['auto', 'session', 'stateless'] as const;
const ISOLATIONS = ['shared', 'user', 'session'] as const;

const EXAMPLE = 'https://wiki.example.com/mcp';

const address = text(
  { ...httpUrl, allowed: `${httpUrl.allowed}, for example ${EXAMPLE}` },
  {
    schema: { type: 'string', pattern: '^https?://' },
    isSecret: true,
  },
);

const PREFIX_PATTERN = '^([A-Za-z0-9]([A-Za-z0-9_.-]{0,30}[A-Za-z0-9])?)?$';
const PREFIX = new RegExp(PREFIX_PATTERN);

const MAX_PROCESSES = 1000;
const ONE_DAY_SECONDS = 86_400;

/** Of a server that is reached by its URL. */
export const httpMembers = {
  url: defineMember({
    name: 'url',
    shape: address,
    summary: 'The address of the server.',
  }),
  serverUrl: defineMember({
    name: 'serverUrl',
    shape: address,
    summary: 'As url, as other programs call it.',
  }),
  httpUrl: defineMember({
    name: 'httpUrl',
    shape: address,
    summary: 'As url, as other programs call it.',
  }),
  headers: defineMember({
    name: 'headers',
    shape: record(warnOfBareVariable(headerValue), {
      allowed: `an object of headers, such as { "Authorization": "Bearer \${TOKEN}" }`,
      checkName: checkHeaderName,
      names: { pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$" },
    }),
    summary: 'Headers of each request to the server.',
  }),
  auth: defineMember({
    name: 'auth',
    shape: authShape,
    summary: 'What tells the server who calls.',
  }),
  ca: defineMember({
    name: 'ca',
    shape: freeText(),
    summary:
      'A PEM file with the authorities that may have signed its certificate, in place of the system’s. Relative to the configuration file.',
  }),
};

/** Of a server that the gateway starts. */
export const stdioMembers = {
  command: defineMember({
    name: 'command',
    shape: freeText(),
    summary: 'The program to start.',
  }),
  args: defineMember({
    name: 'args',
    shape: argumentList,
    summary: 'Its arguments.',
  }),
  env: defineMember({
    name: 'env',
    shape: record(warnOfBareVariable(freeText({ isSecret: true })), {
      allowed: `an object of variables, such as { "TOKEN": "\${TOKEN}" }`,
      checkName: (name) =>
        /^[^=\0]+$/.test(name) ? undefined : 'A variable’s name is not empty and has no =.',
    }),
    summary: 'Environment variables, beside PATH, HOME, USER, LANG and TMPDIR.',
  }),
  cwd: defineMember({
    name: 'cwd',
    shape: freeText(),
    summary: 'The folder it runs in. Relative to the configuration file.',
  }),
  runAs: defineMember({
    name: 'runAs',
    shape: text(systemUser, { schema: { type: 'string' } }),
    summary:
      'The user of the system that it runs as, such as postern-files or 1001:1001, in place of RUN_PROGRAMS_AS.',
  }),
  isolation: defineMember({
    name: 'isolation',
    shape: text(oneOf(...ISOLATIONS), { schema: { enum: ISOLATIONS } }),
    summary: 'For whom there is a process of its own.',
  }),
  maxProcesses: defineMember({
    name: 'maxProcesses',
    shape: wholeNumber(integer(1, MAX_PROCESSES), 1, MAX_PROCESSES),
    summary: 'The most processes at once, with isolation user or session.',
  }),
  idleSeconds: defineMember({
    name: 'idleSeconds',
    shape: wholeNumber(integer(1, ONE_DAY_SECONDS), 1, ONE_DAY_SECONDS),
    summary: 'Seconds without a call after which a user’s process ends.',
  }),
};

/** Of each server. */
export const commonMembers = {
  type: defineMember({
    name: 'type',
    shape: text(oneOf(...TYPES), { schema: { enum: TYPES } }),
    summary: 'The transport: stdio with command, else http unless it is sse (2024-11-05).',
  }),
  disabled: defineMember({
    name: 'disabled',
    shape: trueOrFalse,
    summary: 'true leaves the server out.',
  }),
  prefix: defineMember({
    name: 'prefix',
    shape: text(
      {
        parse: (given) => (PREFIX.test(given) ? given : undefined),
        allowed:
          'up to 32 letters, digits, hyphens, underscores and dots that begin and end with a letter or digit, or "" for none',
      },
      { schema: { type: 'string', pattern: PREFIX_PATTERN } },
    ),
    summary: 'Before the names of its tools and prompts, in place of the server’s name.',
  }),
  timeout: defineMember({
    name: 'timeout',
    shape: wholeNumber(timeoutRule, timeoutRule.min, timeoutRule.max),
    summary: 'Milliseconds without progress after which a call ends.',
  }),
  required: defineMember({
    name: 'required',
    shape: trueOrFalse,
    summary: 'Whether the gateway is ready only while the server can be reached.',
  }),
  era: defineMember({
    name: 'era',
    shape: text(oneOf(...ERAS), { schema: { enum: ERAS } }),
    summary:
      'How the gateway speaks to it: with sessions (MCP up to 2025-11-25), stateless (2026-07-28), or, as auto, stateless where it can. session helps with a server of both whose tools ask only in sessions.',
  }),
  roots: defineMember({
    name: 'roots',
    shape: trueOrFalse,
    summary:
      'Whether it is told the roots of clients: paths on their machines. They may replace what it lets its callers read.',
  }),
  tools: defineMember({
    name: 'tools',
    shape: toolsShape,
    summary: 'Which of its tools are served, and how they are described.',
  }),
};

/** The names of a server's address. */
export const addressMembers: readonly Member<string>[] = [
  httpMembers.url,
  httpMembers.serverUrl,
  httpMembers.httpUrl,
];

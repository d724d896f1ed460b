// §26.1: `guards` of the configuration file.

import {
  choice,
  freeText,
  requestHeaders,
  text,
  wholeNumber,
} from '../../config/file/shapes/scalar.ts';
import {
  defineMember,
  type FilePlace,
  list,
  type MemberReader,
  object,
  type Shape,
} from '../../config/file/shapes/shape.ts';
import { httpUrl } from '../../config/rules.ts';
import { GUARD_POINTS, type GuardPoint } from '../../mcp/calls/guards.ts';
import { MAX_GLOB_LENGTH } from '../../platform/glob.ts';

/** The part of the file about who looks at what goes through. */
export interface GuardsConfig {
  /** In their order; left out where there are none. */
  readonly guards?: readonly GuardConfig[];
  /** `"guards": []`: that there are none is meant. */
  readonly meansNoGuards?: true;
}

export interface GuardConfig {
  readonly name: string;
  readonly on: readonly GuardPoint[];
  /** Names of servers; undefined for all, and the built-in catalogue. */
  readonly servers: readonly string[] | undefined;
  /** Globs over names of tools as at `/mcp`; undefined for all. What is about no tool is looked at whatever it says. */
  readonly tools: readonly string[] | undefined;
  readonly use: GuardUse;
  readonly onError: 'refuse' | 'pass';
}

export type GuardUse =
  | HttpGuardConfig
  | McpGuardConfig
  /** `path` is absolute once the file is complete. */
  | { readonly kind: 'module'; readonly path: string; readonly timeoutMs: number }
  | BuiltInGuardConfig;

export interface HttpGuardConfig {
  readonly kind: 'http';
  readonly url: string;
  /** Secrets are among them. */
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
}

export interface McpGuardConfig {
  readonly kind: 'mcp';
  /** A server of the file. */
  readonly server: string;
  /** Which of its interceptors; undefined for all that look at what the guard does. */
  readonly interceptor: string | undefined;
  readonly timeoutMs: number;
}

export type BuiltInGuardConfig =
  | { readonly kind: 'secrets'; readonly action: GuardAction }
  | { readonly kind: 'size'; readonly maxBytes: number }
  | { readonly kind: 'links'; readonly hosts: readonly string[]; readonly action: GuardAction };

export type GuardAction = 'redact' | 'refuse';

const DEFAULT_TIMEOUT_MS = 2_000;
const MIN_TIMEOUT_MS = 10;
const MAX_TIMEOUT_MS = 60_000;
const MAX_SIZE_BYTES = 67_108_864;

const timeout = defineMember(
  'timeout',
  wholeNumber(MIN_TIMEOUT_MS, MAX_TIMEOUT_MS),
  `Milliseconds for one answer; then the guard has failed. The default is ${DEFAULT_TIMEOUT_MS}.`,
);

// The only one so far: another becomes another choice, and this one stays the default.
const version = defineMember(
  'version',
  choice('sep-2624'),
  'The shapes that are spoken: sep-2624, those of the interceptors proposal of MCP.',
);

/** Present in each request to a guard. */
const OWN_HEADERS: ReadonlySet<string> = new Set(['accept', 'content-type', 'traceparent']);

const httpMembers = {
  url: defineMember(
    'url',
    text(
      { ...httpUrl, allowed: `${httpUrl.allowed}, for example https://guard.example.com/judge` },
      { schema: { type: 'string', pattern: '^https?://' }, isSecret: true },
    ),
    'The address that each message is sent to.',
  ),
  headers: defineMember(
    'headers',
    requestHeaders(OWN_HEADERS),
    'Headers of each request to the guard.',
  ),
  timeout,
  version,
};

const httpShape: Shape<HttpGuardConfig> = object({
  allowed: 'an object with url',
  members: Object.values(httpMembers),
  schema: { required: ['url'] },
  build({ has, read, report }) {
    const url = read(httpMembers.url);
    read(httpMembers.version);
    if (!has(httpMembers.url)) report('"url" is missing: the address of the guard.');
    return url === undefined
      ? undefined
      : {
          kind: 'http',
          url,
          headers: read(httpMembers.headers) ?? {},
          timeoutMs: read(httpMembers.timeout) ?? DEFAULT_TIMEOUT_MS,
        };
  },
});

const actionShape = choice('redact', 'refuse');

const useMembers = {
  http: defineMember('http', httpShape, 'A service that is asked over HTTP.'),
  mcp: defineMember(
    'mcp',
    freeText(),
    'The name of an MCP server of this file that has interceptors. Clients do not see it.',
  ),
  interceptor: defineMember(
    'interceptor',
    freeText(),
    'With mcp: which of its interceptors is asked. All that look at the same, unless given.',
  ),
  module: defineMember(
    'module',
    freeText(),
    'A JavaScript module whose default export is the guard, relative to this file. It runs in the gateway’s process.',
  ),
  builtIn: defineMember(
    'builtIn',
    choice('secrets', 'size', 'links'),
    'A guard that comes with the gateway: secrets finds keys and tokens, size bounds messages, links finds URLs to other hosts.',
  ),
  action: defineMember(
    'action',
    actionShape,
    'With secrets and links: what is found is replaced (redact, the default), or nothing passes (refuse).',
  ),
  maxBytes: defineMember(
    'maxBytes',
    wholeNumber(1, MAX_SIZE_BYTES),
    'With size: the most bytes of a message, as JSON.',
  ),
  hosts: defineMember(
    'hosts',
    list(hostPattern(), {
      allowed: 'a list of hosts, such as ["example.com", "*.example.com"]',
      isNotEmpty: true,
    }),
    'With links: the hosts that URLs may lead to. *.example.com is any host below example.com.',
  ),
  timeout,
  version,
};

function hostPattern(): Shape<string> {
  return text(
    {
      parse: (given) =>
        /^(\*\.)?[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/i.test(given) ? given.toLowerCase() : undefined,
      allowed: 'a host such as example.com or *.example.com, without scheme and port',
    },
    { schema: { type: 'string', pattern: '^(\\*\\.)?[A-Za-z0-9]' } },
  );
}

const KINDS = [useMembers.http, useMembers.mcp, useMembers.module, useMembers.builtIn] as const;

const useShape: Shape<GuardUse> = object<GuardUse>({
  allowed: 'an object with http, mcp, module or builtIn',
  members: Object.values(useMembers),
  schema: { oneOf: KINDS.map(({ name }) => ({ required: [name] })) },
  build(members) {
    const { has, read, report } = members;
    const given = KINDS.filter(has);
    if (given.length !== 1) {
      return report(
        given.length === 0
          ? 'It names no guard. Write one of http, mcp, module and builtIn.'
          : `It names ${given.map(({ name }) => name).join(' and ')}. Keep one of them.`,
      );
    }
    const builtIn = has(useMembers.builtIn) ? read(useMembers.builtIn) : undefined;
    // Members of a misspelled one are not misplaced.
    if (has(useMembers.builtIn) && builtIn === undefined) return undefined;
    reportMisplaced(members, builtIn);
    read(useMembers.version);
    const timeoutMs = read(useMembers.timeout) ?? DEFAULT_TIMEOUT_MS;
    if (builtIn !== undefined) return buildBuiltIn(members, builtIn);
    if (has(useMembers.http)) return read(useMembers.http);
    const path = read(useMembers.module);
    if (path !== undefined) return { kind: 'module', path, timeoutMs };
    const server = read(useMembers.mcp);
    return server === undefined
      ? undefined
      : { kind: 'mcp', server, interceptor: read(useMembers.interceptor), timeoutMs };
  },
});

/** A member that says nothing where it stands was meant to say something. */
function reportMisplaced(
  { has, report }: MemberReader,
  builtIn: BuiltInGuardConfig['kind'] | undefined,
): void {
  const misplaced = [
    [useMembers.action, builtIn === 'secrets' || builtIn === 'links'],
    [useMembers.maxBytes, builtIn === 'size'],
    [useMembers.hosts, builtIn === 'links'],
    [useMembers.interceptor, has(useMembers.mcp)],
    [useMembers.version, has(useMembers.mcp)],
    [useMembers.timeout, has(useMembers.mcp) || has(useMembers.module)],
  ] as const;
  for (const [member, isRight] of misplaced) {
    if (has(member) && !isRight) {
      const hint = has(useMembers.http) ? ' Write it inside of http, if it belongs there.' : '';
      report(`${member.name} says nothing here. Remove it.${hint}`, member);
    }
  }
}

function buildBuiltIn(
  { has, read, report }: MemberReader,
  kind: BuiltInGuardConfig['kind'],
): BuiltInGuardConfig | undefined {
  const action = read(useMembers.action) ?? 'redact';
  if (kind === 'secrets') return { kind, action };
  if (kind === 'size') {
    const maxBytes = read(useMembers.maxBytes);
    if (!has(useMembers.maxBytes)) report('"maxBytes" is missing: the most bytes of a message.');
    return maxBytes === undefined ? undefined : { kind, maxBytes };
  }
  const hosts = read(useMembers.hosts);
  if (!has(useMembers.hosts)) report('"hosts" is missing: the hosts that URLs may lead to.');
  return hosts === undefined ? undefined : { kind, hosts, action };
}

const NAME_PATTERN = '^[a-z][a-z0-9-]{0,31}$';

const guardMembers = {
  name: defineMember(
    'name',
    text(
      {
        parse: (given) => (new RegExp(NAME_PATTERN).test(given) ? given : undefined),
        allowed: 'a letter, then up to 31 letters, digits and hyphens, in lower case',
      },
      { schema: { type: 'string', pattern: NAME_PATTERN } },
    ),
    'What the log, the audit log and metrics call it.',
  ),
  on: defineMember(
    'on',
    list(choice(...GUARD_POINTS), {
      allowed: `a list of what it looks at: ${GUARD_POINTS.join(', ')}`,
      isNotEmpty: true,
    }),
    'What it looks at.',
  ),
  servers: defineMember(
    'servers',
    list(freeText(), { allowed: 'a list of names of servers', isNotEmpty: true }),
    'Names of servers of this file. It looks at all, and at the built-in catalogue, unless given.',
  ),
  tools: defineMember(
    'tools',
    list(
      text(
        {
          parse: (given) => (given !== '' && given.length <= MAX_GLOB_LENGTH ? given : undefined),
          allowed: `1 to ${MAX_GLOB_LENGTH} characters: a tool’s name as clients of /mcp see it, in which * is any text`,
        },
        { schema: { type: 'string', minLength: 1, maxLength: MAX_GLOB_LENGTH } },
      ),
      { allowed: 'a list of tool names, in which * is any text', isNotEmpty: true },
    ),
    'Of tools it looks at these only: names as clients of /mcp see them, in which * is any text. Prompts and resources it looks at all the same.',
  ),
  use: defineMember('use', useShape, 'Which guard it is.'),
  onError: defineMember(
    'onError',
    choice('refuse', 'pass'),
    'What happens while it cannot be asked, or answers what cannot be used: refuse, the default, or pass.',
  ),
};

/** With its place in the file, where its problems are reported. */
export interface PlacedGuard {
  readonly config: GuardConfig;
  readonly place: FilePlace;
  readonly line: number;
}

const guardShape: Shape<GuardConfig> = object({
  allowed: 'an object with name, on and use',
  members: Object.values(guardMembers),
  schema: { required: ['name', 'on', 'use'] },
  build({ has, read, report }) {
    for (const member of [guardMembers.name, guardMembers.on, guardMembers.use]) {
      if (!has(member)) report(`"${member.name}" is missing.`);
    }
    const name = read(guardMembers.name);
    const on = read(guardMembers.on);
    const use = read(guardMembers.use);
    const servers = read(guardMembers.servers);
    const tools = read(guardMembers.tools);
    const onError = read(guardMembers.onError) ?? 'refuse';
    return name === undefined || on === undefined || use === undefined
      ? undefined
      : { name, on: [...new Set(on)], servers, tools, use, onError };
  },
});

export const guardsShape: Shape<readonly PlacedGuard[]> = list(
  {
    schema: guardShape.schema,
    read(node, place) {
      const config = guardShape.read(node, place);
      return config && { config, place, line: node.line };
    },
  },
  { allowed: 'a list of guards' },
);

/** Describes a guard for operators: never a path, a query or a header of its address. */
export function describeUse(use: GuardUse): string {
  switch (use.kind) {
    case 'http':
      return `http ${new URL(use.url).host}`;
    case 'mcp':
      return `mcp ${use.server}`;
    case 'module':
      return `module ${use.path.split(/[\\/]/).at(-1)}`;
    default:
      return `built in: ${use.kind}`;
  }
}

// Members of every server in the configuration file, declared once for parsing and for the JSON Schema.
import type { Config } from '../../config/config.ts';
import {
  choice,
  freeText,
  globText,
  patternText,
  trueOrFalse,
  wholeNumber,
} from '../../config/file/shapes/scalar.ts';
import {
  createRecordShape,
  defineMember,
  list,
  type MemberReader,
  object,
  record,
  type Shape,
} from '../../config/file/shapes/shape.ts';
import { integer, type Rule } from '../../config/rules.ts';
import type { ToolSelection, UpstreamConfig } from '../../mcp/upstream/upstream-config.ts';

const PREFIX_PATTERN = '^([A-Za-z0-9]([A-Za-z0-9_.-]{0,30}[A-Za-z0-9])?)?$';

const MIN_TIMEOUT_MS = 1000;
const MAX_TIMEOUT_MS = 86_400_000;
const DEFAULT_TIMEOUT_MS = 60_000;

const milliseconds = integer(MIN_TIMEOUT_MS, MAX_TIMEOUT_MS);

/** In milliseconds. Some programs use seconds, so the error for a small value mentions both units. */
const timeoutRule: Rule<number> = {
  parse: milliseconds.parse,
  allowed: `milliseconds: ${milliseconds.allowed}`,
  explain(written) {
    const given = Number(written);
    return given > 0 && given < MIN_TIMEOUT_MS
      ? `Postern reads it as ${given} milliseconds; some programs mean ${given} seconds, which is ${given * 1000} here.`
      : undefined;
  },
};

const globs = list(globText('a tool’s name, in which * is any text and ? any character'), {
  allowed: 'a list of tool names, in which * is any text and ? any character',
});

const toolsMembers = {
  include: defineMember(
    'include',
    globs,
    'The tools that are served: the server’s own names, in which * is any text.',
  ),
  exclude: defineMember(
    'exclude',
    globs,
    'The tools that are not served. Takes precedence over include.',
  ),
  describe: defineMember(
    'describe',
    record(freeText(), { allowed: 'an object of descriptions by tool name' }),
    'Descriptions that replace the server’s, by the tool’s own name.',
  ),
};

/** All tools, with the server's own descriptions. */
const ALL_TOOLS: ToolSelection = { include: ['*'], exclude: [], describe: createRecordShape([]) };

const toolsShape: Shape<ToolSelection> = object({
  allowed: 'an object with include, exclude or describe',
  members: Object.values(toolsMembers),
  build: ({ read }) => ({
    include: read(toolsMembers.include) ?? ALL_TOOLS.include,
    exclude: read(toolsMembers.exclude) ?? ALL_TOOLS.exclude,
    describe: read(toolsMembers.describe) ?? ALL_TOOLS.describe,
  }),
});

/** Values of `type`. Each belongs to one transport, which lists it; the member `type` below describes them. */
export const SERVER_TYPES = ['http', 'streamableHttp', 'streamable-http', 'sse', 'stdio'] as const;

export type ServerType = (typeof SERVER_TYPES)[number];

/** Members of every server. */
export const commonMembers = {
  type: defineMember(
    'type',
    choice(...SERVER_TYPES),
    'The transport: stdio with command, else http unless it is sse (2024-11-05).',
  ),
  disabled: defineMember('disabled', trueOrFalse, 'true leaves the server out.'),
  prefix: defineMember(
    'prefix',
    patternText(
      PREFIX_PATTERN,
      'up to 32 letters, digits, hyphens, underscores and dots that begin and end with a letter or digit, or "" for none',
    ),
    'The prefix of the names of its tools and prompts, instead of the server’s name.',
  ),
  timeout: defineMember(
    'timeout',
    wholeNumber(MIN_TIMEOUT_MS, MAX_TIMEOUT_MS, timeoutRule),
    'Milliseconds without progress after which a call ends.',
  ),
  required: defineMember(
    'required',
    trueOrFalse,
    'true: the gateway is ready only while the server can be reached.',
  ),
  era: defineMember(
    'era',
    choice('auto', 'session', 'stateless'),
    'The era that the gateway uses with it: session (MCP up to 2025-11-25), stateless (2026-07-28), or auto, which is stateless if possible. session helps if the server supports both, and its tools ask the user only in sessions.',
  ),
  roots: defineMember(
    'roots',
    trueOrFalse,
    'true: it gets the roots of clients, paths on their machines. They may replace the folders that it lets its callers read.',
  ),
  tools: defineMember(
    'tools',
    toolsShape,
    'Selects the tools that are served, and replaces their descriptions.',
  ),
};

/** The file adds the name and the prefix derived from it. */
export type Unnamed<Config extends UpstreamConfig> = Omit<Config, 'name' | 'prefix'> & {
  readonly prefix: string | undefined;
};

export function readCommon({ read }: MemberReader) {
  return {
    prefix: read(commonMembers.prefix),
    timeoutMs: read(commonMembers.timeout) ?? DEFAULT_TIMEOUT_MS,
    required: read(commonMembers.required) ?? false,
    era: read(commonMembers.era) ?? 'auto',
    roots: read(commonMembers.roots) ?? false,
    tools: read(commonMembers.tools) ?? ALL_TOOLS,
  };
}

/** Access to the gateway and its machine, for completing the servers once the whole file has been read. */
export interface FileSurroundings {
  readonly config: Pick<Config, 'admin' | 'auth' | 'oauth' | 'server' | 'store' | 'upstreams'>;
  /** Looks up a user that programs may run as, by name or numbers. Never rejects. */
  findProgramUser(text: string): Promise<FoundProgramUser>;
  /** Resolves a path relative to the file. */
  resolvePath(path: string): string;
  /** Reads a file that the configuration names. @throws Error with the problem. */
  readText(path: string): string;
}

/** A system user, looked up once when the file is loaded: after that, only the numbers matter. */
export interface ProgramUser {
  readonly uid: number;
  readonly gid: number;
  /** Undefined if the system has no entry for the numbers. */
  readonly name: string | undefined;
  readonly home: string | undefined;
}

export type FoundProgramUser =
  | { readonly kind: 'found'; readonly user: ProgramUser }
  /** Complete sentences, to be shown after a colon. */
  | { readonly kind: 'problem'; readonly message: string };

// The official conformance tool's scenarios through a gateway that serves nothing of its own: all stands on a server
// behind it, of the client's era or of the other.
import { freePort } from '../gateway/ports.ts';
import { readFile } from '../upstreams/gateway-file.ts';
import { type ConformanceGateway, startConformanceGateway } from './conformance-gateway.ts';
import { type ScenarioSet, SETS, TASK_SCENARIOS } from './conformance-sets.ts';

export interface BehindRow {
  readonly set: ScenarioSet;
  /** Of the server, as the configuration file demands it. */
  readonly era: 'session' | 'stateless';
  /** What cannot pass, for the reasons that docs/protocol.md has. */
  readonly absent: readonly string[];
  /** What passes with a warning. */
  readonly warned: readonly string[];
}

const [SESSIONS, STATELESS] = SETS;

/** A tool of the server says that it changed its lists, and does not; clients are told of lists that differ. */
const UNCHANGED_LISTS = 'server-stateless';

export const ROWS: readonly BehindRow[] = [
  { set: SESSIONS, era: 'session', absent: [], warned: [] },
  // A server without sessions has no stream that could be closed before its end.
  { set: SESSIONS, era: 'stateless', absent: ['server-sse-polling'], warned: [] },
  {
    set: STATELESS,
    era: 'stateless',
    absent: [],
    warned: [...STATELESS.warned, UNCHANGED_LISTS],
  },
  {
    set: STATELESS,
    era: 'session',
    // A server with sessions asks one thing after the other, names none of its questions, does not say which
    // capability it misses, and knows no tasks.
    absent: [
      UNCHANGED_LISTS,
      'input-required-result-basic-elicitation',
      'input-required-result-multiple-input-requests',
      ...TASK_SCENARIOS,
    ],
    warned: STATELESS.warned,
  },
];

const NAME = 'behind';

/** Where the server's tools have the names that the tool knows: of the one server without a prefix, and its own path. */
export const PATHS = ['', `/${NAME}`] as const;

/** A gateway before the one at `url`, which is spoken to in one era only. */
export async function startGatewayBefore(
  url: string,
  era: BehindRow['era'],
): Promise<ConformanceGateway> {
  const mcpServers = { [NAME]: { url, prefix: '', roots: true, era } };
  const file = await readFile({ builtIn: false, mcpServers });
  return startConformanceGateway({ PORT: String(await freePort()) }, { file });
}

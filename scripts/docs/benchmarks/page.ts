import { readPublished } from '../../../bench/published.ts';
import { renderCalls } from './calls.ts';
import { renderGrowth, renderMemory, renderStart, renderStreams } from './growth.ts';
import { renderNodes } from './nodes.ts';
import { renderProfile, renderRelayProfile } from './profile.ts';
import { renderRelay } from './relay.ts';

/** `docs/benchmarks.md`, from the results that `npm run bench -- --publish` left. */
export function renderBenchmarksPage(): string {
  const { calls, relay, relayProfile, profile, growth, memory, streams, start, nodes } =
    readPublished();
  const sections = [
    INTRODUCTION,
    calls ? renderCalls(calls) : NOTHING_PUBLISHED,
    relay && renderRelay(relay),
    profile && renderProfile(profile),
    relayProfile && renderRelayProfile(relayProfile),
    growth && renderGrowth(growth),
    memory && renderMemory(memory),
    streams && renderStreams(streams),
    start && renderStart(start),
    nodes && renderNodes(nodes),
    METHOD,
  ];
  return sections.filter((section) => section !== undefined).join('\n');
}

const INTRODUCTION = `# Benchmarks

How much CPU does a tool call cost, and how long does it take? This page compares Postern with:

- MCP servers without limits or shared sessions: the official SDK, and fastmcp;
- the **floor**: a small server that does the bare minimum for a gateway with tokens, limits and shared sessions;
- **bare** \`node:http\`: the minimum for any HTTP server on Node.js.

The call is \`tools/call\` of \`service_ping\` with an RS256 token. Postern checks the token, counts the request in two rate
limits, reads the session, extends it and runs the tool.
`;

const NOTHING_PUBLISHED = `No figures were published for this version yet. [Repeat it](#repeat-it) says how to measure.
`;

const METHOD = `## How it is measured

- Two cores: the server has one to itself; the load generator (wrk) and Redis share the other.
- Every contestant is a separate process. In each round, each of them runs once, in rotating order, so
  that a slow moment on the machine affects all of them equally. Ratios are computed within a round; the tables have their medians.
- CPU is the user and system time that the operating system counted for all threads of the process, divided by the number of requests.
- Every answer is compared byte by byte with the expected one, including its id and all headers. One wrong answer voids the row.
- wrk waits for an answer before it sends the next request on a connection. A slow server therefore gets fewer requests, and
  p99 is measured under full load: under less load, latencies are lower.

What is not measured: many different users and tokens at once (all calls share one token and one session, so the
signature is always remembered), networks (everything is on one machine), TLS, large bodies, streams, and tools
that do real work.

## Repeat it

\`\`\`sh
npm ci
npm run bench                # what a call costs, about 18 minutes
npm run bench -- --quick     # the same in under a minute
npm run bench -- relay --only table,profile
npm run bench -- guard       # fails if any variant costs more than twice its goal; under 3 minutes
npm run bench -- growth
npm run bench -- memory
npm run bench -- start
npm run bench -- profile
npm run bench -- calls --node 24,26
npm run bench -- --help
\`\`\`

The benchmark needs Linux, two cores, \`wrk\` and \`redis-server\`. On Debian, if you run it as root, it installs the missing programs. The first run
installs the packages of the other contestants into \`bench/contestants\`. Nothing else should run at the same time.
\`--publish\` writes the results into this page; the raw ones are in \`docs/assets/benchmarks.json\`.
`;

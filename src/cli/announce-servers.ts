// What postern dev says of the servers behind the gateway, each once it is known how it is.
import type { Clock } from '../core/clock.ts';
import type { ServerFacts } from '../features/upstreams/catalog/upstream-catalogs.ts';

export interface AnnounceServersOptions {
  listServers(): readonly ServerFacts[];
  readonly say: (line: string) => void;
  readonly clock: Clock;
}

const LOOK_EVERY_MS = 200;
/** How long is waited for what a server that answers has, and for one that nobody has tried. */
const PATIENCE_MS = 5000;

/** `✓ git     12 tools`. The result ends it. */
export function announceServers({ listServers, say, clock }: AnnounceServersOptions): () => void {
  const told = new Set<string>();
  const startedAt = clock.monotonic();
  let cancel = () => {};

  function look(): void {
    const servers = listServers();
    const width = Math.max(0, ...servers.map(({ name }) => name.length));
    const isLate = clock.monotonic() - startedAt > PATIENCE_MS;
    for (const server of servers) {
      const state = told.has(server.name) ? undefined : describeState(server, isLate);
      if (state === undefined) continue;
      told.add(server.name);
      const [mark, words] = state;
      say(`  ${mark} ${server.name.padEnd(width)}  ${words}`);
    }
    if (told.size < servers.length) cancel = clock.after(LOOK_EVERY_MS, look);
  }

  look();
  return () => cancel();
}

/** Undefined while it may still change by itself. */
function describeState(
  { isUp, reason, tools }: ServerFacts,
  isLate: boolean,
): readonly [mark: string, words: string] | undefined {
  if (isUp === false) return ['✗', reason ?? 'it does not answer'];
  if (isUp === true && tools !== undefined)
    return ['✓', `${tools} ${tools === 1 ? 'tool' : 'tools'}`];
  if (!isLate) return undefined;
  return isUp ? ['✓', 'tools differ between users'] : ['·', 'starts when somebody uses it'];
}

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
  const toldToStart = new Set<string>();
  const startedAt = clock.monotonic();
  let cancel = () => {};

  function look(): void {
    const servers = listServers();
    const width = Math.max(0, ...servers.map(({ name }) => name.length));
    const isLate = clock.monotonic() - startedAt > PATIENCE_MS;
    for (const server of servers) {
      if (told.has(server.name)) continue;
      const print = (mark: string, words: string) =>
        say(`  ${mark} ${server.name.padEnd(width)}  ${words}`);
      const state = describeState(server, isLate);
      if (state !== undefined) {
        told.add(server.name);
        print(...state);
      } else if (isLate && !toldToStart.has(server.name)) {
        // The first time, npx has to download it.
        toldToStart.add(server.name);
        print('…', 'still starting');
      }
    }
    if (told.size < servers.length) cancel = clock.after(LOOK_EVERY_MS, look);
  }

  look();
  return () => cancel();
}

/** Undefined while it may still change by itself. */
function describeState(
  { isUp, reason, tools, isPersonal }: ServerFacts,
  isLate: boolean,
): readonly [mark: string, words: string] | undefined {
  if (isUp === false) return ['✗', reason ?? 'it does not answer'];
  if (isUp === true && tools !== undefined)
    return ['✓', `${tools} ${tools === 1 ? 'tool' : 'tools'}`];
  if (!isLate || !isPersonal) return undefined;
  return isUp ? ['✓', 'tools differ between users'] : ['·', 'starts when somebody uses it'];
}

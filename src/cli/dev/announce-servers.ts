// What postern dev says of the servers behind the gateway, each once it is known how it is.

import type { ServerFacts } from '../../catalog/upstream-catalogs.ts';
import { systemClock } from '../../platform/clock.ts';
import { countNoun } from '../../platform/text.ts';
import { leaveOutNextStart } from '../../servers/stdio/stdio-upstream.ts';

const LOOK_EVERY_MS = 200;
/** Once each has been announced. */
const WATCH_EVERY_MS = 1000;
/** How long to wait for the tools of a server that answers, and for a server that nobody has tried. */
const PATIENCE_MS = 5000;

/** `✓ git     12 tools`; of one that failed also that it answers again. The result ends it. */
export function announceServers(
  listServers: () => readonly ServerFacts[],
  say: (line: string) => void,
): () => void {
  const clock = systemClock;
  const told = new Set<string>();
  const toldToStart = new Set<string>();
  const down = new Set<string>();
  const startedAt = clock.monotonic();
  let cancel = () => {};

  function look(): void {
    const servers = listServers();
    const width = Math.max(0, ...servers.map(({ name }) => name.length));
    const isLate = clock.monotonic() - startedAt > PATIENCE_MS;
    for (const server of servers) {
      const print = (mark: string, words: string) =>
        say(`  ${mark} ${server.name.padEnd(width)}  ${words}`);
      if (told.has(server.name)) {
        watchReturn(server, print);
        continue;
      }
      const state = describeState(server, isLate);
      if (state !== undefined) {
        told.add(server.name);
        if (server.isUp === false) down.add(server.name);
        print(...state);
      } else if (isLate && !toldToStart.has(server.name)) {
        // The first time, npx has to download it.
        toldToStart.add(server.name);
        print('…', 'still starting');
      }
    }
    cancel = clock.after(told.size < servers.length ? LOOK_EVERY_MS : WATCH_EVERY_MS, look);
  }

  /** A server that failed and answers again: the screen still shows that it failed. */
  function watchReturn(
    { name, isUp, tools }: ServerFacts,
    print: (mark: string, words: string) => void,
  ): void {
    if (isUp === false) down.add(name);
    if (isUp !== true || tools === undefined || !down.delete(name)) return;
    print('✓', `answers again, ${countNoun(tools, 'tool')}`);
  }

  look();
  return () => cancel();
}

/** Undefined while it may still change by itself. */
function describeState(
  { isUp, reason, tools, isPersonal }: ServerFacts,
  isLate: boolean,
): readonly [mark: string, words: string] | undefined {
  // Without the time until the next start, which would soon be wrong on the screen.
  if (isUp === false) return ['✗', leaveOutNextStart(reason ?? 'it does not answer')];
  if (isUp === true && tools !== undefined) return ['✓', countNoun(tools, 'tool')];
  if (!isLate || !isPersonal) return undefined;
  return isUp ? ['✓', 'tools differ between users'] : ['·', 'starts when somebody uses it'];
}

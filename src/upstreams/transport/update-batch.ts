// §18.4: resources that have changed, told in batches: a server may say so a hundred thousand times a second, and each
// time costs a look into the store.
import type { Clock } from '../../platform/clock.ts';

const INTERVAL_MS = 250;
/** Resources that wait to be told of; more are dropped. */
const MAX_WAITING = 100;

/** At once where nothing was told lately; of a resource that changes all the time, once in each batch. */
export function createUpdateBatch(
  clock: Clock,
  tell: (uri: string) => Promise<void>,
): (uri: string) => void {
  const waiting = new Set<string>();
  let isPausing = false;

  async function tellAll(): Promise<void> {
    isPausing = true;
    const uris = [...waiting];
    waiting.clear();
    for (const uri of uris) await tell(uri).catch(() => {});
    clock.after(INTERVAL_MS, () => {
      isPausing = false;
      if (waiting.size > 0) void tellAll();
    });
  }

  return function noteUpdate(uri) {
    if (waiting.size >= MAX_WAITING) return;
    waiting.add(uri);
    if (!isPausing) void tellAll();
  };
}

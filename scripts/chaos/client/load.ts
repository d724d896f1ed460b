// Calls at a fixed rate, whatever becomes of the earlier ones: a service that stalls is not spared.

export interface Load {
  /** No further calls; resolves once those under way are answered. */
  stop(): Promise<void>;
  /** No further calls; does not wait. */
  close(): void;
}

const TICK_MS = 10;
/** Beyond this the client would be what is overloaded. */
const MAX_UNDER_WAY = 5000;

export function startLoad(ratePerSecond: number, call: () => Promise<unknown>): Load {
  const underWay = new Set<Promise<unknown>>();
  const start = performance.now();
  let started = 0;
  let failure: unknown;

  const timer = setInterval(() => {
    const due = ((performance.now() - start) / 1000) * ratePerSecond;
    for (; started < due; started += 1) {
      if (underWay.size >= MAX_UNDER_WAY) continue;
      const one = call()
        .catch((error: unknown) => {
          failure ??= error;
        })
        .finally(() => underWay.delete(one));
      underWay.add(one);
    }
  }, TICK_MS);

  return {
    close: () => clearInterval(timer),
    async stop() {
      clearInterval(timer);
      while (underWay.size > 0) await Promise.all(underWay);
      if (failure !== undefined) throw failure;
    },
  };
}

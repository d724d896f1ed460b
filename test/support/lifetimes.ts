// How long a test's own servers live: as long as the file or `describe`, or as long as one test.
import { afterAll, beforeAll, beforeEach, onTestFinished } from 'vitest';

/**
 * Starts something before the first test of this file or `describe`, and closes it after the last.
 * The value returned stands for what was started: use it in tests and hooks.
 */
export function useShared<Started extends object>(
  start: () => Started | Promise<Started>,
  startLimitMs?: number,
): Started {
  const { standIn, open, close } = createLifetime(start);
  beforeAll(open, startLimitMs);
  afterAll(close);
  return standIn;
}

/** As `useShared`, but each test gets one of its own. */
export function useFresh<Started extends object>(
  start: () => Started | Promise<Started>,
  startLimitMs?: number,
): Started {
  const { standIn, open, close } = createLifetime(start);
  beforeEach(async () => {
    await open();
    onTestFinished(close);
  }, startLimitMs);
  return standIn;
}

/** Closes what a test has started itself once that test has ended, the last one first. */
export function closeAfterTest<Started extends object>(started: Started): Started {
  onTestFinished(() => closeStarted(started));
  return started;
}

function createLifetime<Started extends object>(start: () => Started | Promise<Started>) {
  let current: Started | undefined;

  function started(): Started {
    if (current === undefined) throw new Error('It is started with the tests: use it inside them.');
    return current;
  }

  const target: Started = Object.create(null);
  const standIn = new Proxy(target, {
    get: (_target, name) => Reflect.get(started(), name),
    set: (_target, name, value) => Reflect.set(started(), name, value),
  });

  return {
    standIn,
    async open() {
      current = await start();
    },
    async close() {
      const ended = current;
      current = undefined;
      if (ended) await closeStarted(ended);
    },
  };
}

async function closeStarted(started: object): Promise<void> {
  if ('close' in started && typeof started.close === 'function') await started.close();
}

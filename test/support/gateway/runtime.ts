// A runtime in a line, for a part that a test makes without a gateway around it.
import { loadConfig } from '../../../src/config/load.ts';
import { systemClock } from '../../../src/platform/clock.ts';
import type { Runtime, RuntimeOverrides } from '../../../src/runtime/runtime.ts';
import { createSeal } from '../../../src/store/seal/seal.ts';
import type { Store } from '../../../src/store/store.ts';
import { noMetrics } from '../../../src/telemetry/metrics/metrics.ts';
import { collectLog } from './log.ts';
import { noInternet } from './no-internet.ts';

const SECRET = 'a secret of at least thirty-two characters';

interface TestRuntime extends Omit<RuntimeOverrides, 'hasOwnTools'> {
  readonly env?: Readonly<Record<string, string>>;
  /** It stays the test's to close; unless given, nothing may ask it. */
  readonly store?: Store;
}

const NO_STORE = new Proxy({} as Store, {
  get(_store, operation) {
    throw new Error(`This test has no store to ask for ${String(operation)}.`);
  },
});

/** Nothing is told of by it, and nobody on the internet is reached. */
export function openTestRuntime({
  env = { AUTH_REQUIRED: 'false' },
  store = NO_STORE,
  clock = systemClock,
  log = collectLog().log,
  metrics = noMetrics,
  fetch = globalThis.fetch,
  network = noInternet,
}: TestRuntime = {}): Runtime {
  const loginSeal = createSeal([SECRET]);
  return {
    config: loadConfig(env),
    clock,
    log,
    metrics,
    audit: undefined,
    tracing: undefined,
    fetch,
    outbound: { isPublic: false, openPublicNetwork: () => network },
    store,
    loginSeal,
    getSeal: async () => loginSeal,
  };
}

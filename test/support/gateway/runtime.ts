// A runtime in a line, for a part that a test makes without a gateway around it: what is not given may not be asked.
import { loadConfig } from '../../../src/config/load.ts';
import { systemClock } from '../../../src/platform/clock.ts';
import type { Runtime } from '../../../src/runtime/runtime.ts';
import type { Store } from '../../../src/store/store.ts';
import { noMetrics } from '../../../src/telemetry/metrics/metrics.ts';
import { collectLog } from './log.ts';
import { noInternet } from './no-internet.ts';

/** `env` is added to settings by which nobody logs in. A store that is given stays the test's to close. */
export function openTestRuntime({
  env = {},
  ...given
}: Partial<Runtime> & { readonly env?: Readonly<Record<string, string>> } = {}): Runtime {
  return {
    config: loadConfig({ AUTH_REQUIRED: 'false', ...env }),
    clock: systemClock,
    log: collectLog().log,
    metrics: noMetrics,
    audit: undefined,
    notifier: { notify() {}, wants: () => false, use() {}, close() {} },
    tracing: undefined,
    fetch: refuse,
    outbound: { isPublic: false, openPublicNetwork: () => noInternet },
    store: NO_STORE,
    loginSeal: undefined,
    getSeal: refuse,
    ...given,
  };
}

const refuse = () => Promise.reject(new Error('not asked'));

const NO_STORE: Store = new Proxy(Object.create(null), {
  get: (_, name) => (name === 'isShared' ? false : refuse),
});

// §8.7: what a process says of a request by itself, and what it keeps of what Redis said.
import { expect, test } from 'vitest';
import { createLocalAdmission } from '../../../src/store/redis/local-admission.ts';
import { NO_GRANT, NO_SESSION } from '../../../src/store/store.ts';

const WINDOW = { scope: 'ip', key: 'a', windowMs: 1000, max: 10 } as const;
const ACCESS = { sessionId: 'a', owner: undefined, slideSeconds: undefined };
const GRANT = { version: 'a' };

/** Redis cannot count, as of a cluster with one node down; session and grant are known here. */
function start() {
  const limitFailure = new Error('one node is down');
  const admitRequest = createLocalAdmission(
    async () => ({
      verdict: undefined,
      entry: undefined,
      limitFailure,
      session: NO_SESSION,
      grant: NO_GRANT,
    }),
    undefined,
    { find: () => ({ session: NO_SESSION, grant: GRANT }), learn() {} },
  );
  return { admitRequest, limitFailure };
}

test('§8.4 tracked: that windows failed is told beside what is known here', async () => {
  const { admitRequest, limitFailure } = start();
  const admission = await admitRequest([WINDOW], ACCESS, 'grant');
  expect(admission).toEqual({
    verdict: undefined,
    entry: undefined,
    limitFailure,
    session: NO_SESSION,
    grant: GRANT,
  });
});

test('§11 tracked: what is all known here is answered at once', () => {
  expect(start().admitRequest([], ACCESS, 'grant')).toEqual({
    verdict: undefined,
    entry: undefined,
    session: NO_SESSION,
    grant: GRANT,
  });
});

// A login that ends takes its tasks with it, on whatever replica.
import { expect, test } from 'vitest';
import { useFresh } from '../../support/lifetimes.ts';
import { startOwnTokens } from '../../support/oauth/own-tokens.ts';
import { createDeferred, createTaskCatalog, type Work } from '../../support/tasks/task-catalog.ts';
import { beginTask, getTask } from '../../support/tasks/task-client.ts';

const works = new Map<string, Work>();
const own = useFresh(() =>
  startOwnTokens({ deps: { catalog: createTaskCatalog(works) }, isReplicated: true }),
);

test('§29.2 a task of a login that was ended at the other replica is told to stop, and has failed', async () => {
  const stopped = createDeferred();
  works.set('ends', ({ signal }) => {
    signal.addEventListener('abort', () => stopped.resolve('stopped'));
    return stopped.promise;
  });
  const login = await own.logIn();
  const { gateway } = own;
  const taskId = await beginTask(gateway, 'ends', { token: login.access });
  const other = own.other;
  await other.steps.post('/oauth/revoke', {
    token: login.refresh,
    client_id: login.client.id,
  });
  expect(await stopped.promise).toBe('stopped');
  // Another login of the same user reads what became of it.
  const { access } = await own.logIn();
  await expect
    .poll(async () => (await getTask(gateway, taskId, { token: access })).json.result, {
      timeout: 10_000,
    })
    .toMatchObject({ status: 'failed', error: { data: { reason: 'token_revoked' } } });
});

// Tasks of tools that a model finds by a search (§25.3), and calls inside another call.
import { expect, test } from 'vitest';
import { freePort } from '../../support/gateway/ports.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { createDeferred, createTaskCatalog, type Work } from '../../support/tasks/task-catalog.ts';
import { getTask, send, taskBecomes } from '../../support/tasks/task-client.ts';
import { startConformanceGateway } from '../../support/tools/conformance-gateway.ts';
import { startSearchedView } from '../../support/upstreams/searched-view.ts';

const works = new Map<string, Work>();
const catalog = createTaskCatalog(works);

async function start(rest: object = {}) {
  const server = closeAfterTest(
    await startConformanceGateway({ PORT: String(await freePort()) }, { catalog }),
  );
  const file = { mcpServers: { one: server.mcpUrl }, ...rest };
  const gateway = await startSearchedView({ file, builtIn: catalog });
  return { gateway, file };
}

type Gateway = Awaited<ReturnType<typeof start>>['gateway'];

const begin = async (gateway: Gateway, name: string, label: string) => {
  const call = { name, arguments: { label } };
  const { json } = await send(gateway, 'tools/call', { name: 'call_tool', arguments: call });
  expect(json.result).toMatchObject({ resultType: 'task', status: 'working' });
  return json.result.taskId;
};

test.each(['job', 'one__job'])('§29 %s, called by call_tool, goes on as a task', async (name) => {
  const { gateway } = await start();
  const work = createDeferred();
  works.set('found', () => work.promise);
  const taskId = await begin(gateway, name, 'found');
  expect((await getTask(gateway, taskId)).json.result.status).toBe('working');
  work.resolve('done');
  const { result } = await taskBecomes(gateway, taskId, 'completed');
  expect(result.content[0].text).toBe('done');
});

test.each(['job', 'one__job'])(
  '§29.4 %s: whoever may not call it any more does not read what came of it',
  async (name) => {
    const rules = (may: readonly string[]) => [{ who: 'everyone', may }];
    const { gateway, file } = await start({ rules: rules(['*']) });
    const work = createDeferred();
    works.set('forbidden', () => work.promise);
    const taskId = await begin(gateway, name, 'forbidden');
    const views = { research: { search: true } };
    await gateway.reload({ ...file, views, rules: rules(['*plain']) });
    for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel']) {
      const { json } = await send(gateway, method, { taskId, inputResponses: {} });
      expect(json.error).toMatchObject({ code: -32602, message: 'Unknown task' });
    }
    await gateway.reload({ ...file, views });
    work.resolve('done');
    await taskBecomes(gateway, taskId, 'completed');
  },
);

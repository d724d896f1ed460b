// The official package for tasks, as a client of the gateway, for its own tasks and those of a server behind it.
import {
  type ConnectedMcpSessionPort,
  createApplicationInputHandler,
  type JsonRpcResponse,
  resultFromTaskOutcome,
  withTasks,
} from '@modelcontextprotocol/ext-tasks/client';
import { expect, test } from 'vitest';
import { elicit } from '../../../src/index.ts';
import { isObject, type JsonObject } from '../../../src/platform/json.ts';
import { statelessRequest } from '../../support/clients/stateless.ts';
import { startGateway, type TestGateway } from '../../support/gateway/gateway.ts';
import { freePort } from '../../support/gateway/ports.ts';
import { useShared } from '../../support/lifetimes.ts';
import { createTaskCatalog, type Work } from '../../support/tasks/task-catalog.ts';
import { WITH_TASKS } from '../../support/tasks/task-client.ts';
import { startConformanceGateway } from '../../support/tools/conformance-gateway.ts';
import { startRelayGateway } from '../../support/upstreams/relay-gateway.ts';

const works = new Map<string, Work>();
const catalog = createTaskCatalog(works);
const own = useShared(() => startGateway({ deps: { catalog } }));
const server = useShared(async () =>
  startConformanceGateway({ PORT: String(await freePort()) }, { catalog }),
);
const relaying = useShared(() => startRelayGateway({ servers: { one: server.mcpUrl } }));

const NAME = {
  type: 'object',
  properties: { name: { type: 'string' } },
  required: ['name'],
} as const;

/** What of a session the package wants: requests go as a client of 2026-07-28 sends them. */
function createPort(gateway: TestGateway): ConnectedMcpSessionPort {
  let id = 0;
  return {
    endpointId: 'test',
    taskCapabilities: { generation: 'v2', capabilities: {} },
    async dispatch(sent): Promise<JsonRpcResponse> {
      if (!isObject(sent) || typeof sent.method !== 'string') throw new Error('No request');
      id += 1;
      const params: JsonObject = isObject(sent.params) ? sent.params : {};
      const { message, headers } = statelessRequest(sent.method, params, { id, meta: WITH_TASKS });
      const { json } = await gateway.rpc(message, { headers });
      return 'error' in json
        ? { kind: 'error', error: json.error }
        : { kind: 'result', result: json.result };
    },
    onServerRequest: () => () => {},
    onNotification: () => () => {},
    onInvalidated: () => () => {},
    invalidated: false,
  };
}

test.each([
  { what: 'of the gateway', name: 'job', asked: 'Who?', at: () => own },
  { what: 'of a server behind it', name: 'one__job', asked: 'one asks: Who?', at: () => relaying },
])(
  '§29.3 ext-tasks: a task $what is driven to its end',
  async ({ name, asked, at }) => {
    works.set('greets', async ({ ask, progress }) => {
      progress(1, 2, 'Looking');
      const { person } = await ask({ person: elicit('Who?', NAME) });
      return person.action === 'accept' ? `Hello, ${person.content.name}!` : 'Hello!';
    });
    const questions: unknown[] = [];
    const session = withTasks(createPort(at()), {
      onInputRequest: createApplicationInputHandler({
        async elicitation(question) {
          questions.push(question);
          return { action: 'accept', content: { name: 'Ada' } };
        },
        sampling: () => Promise.reject(new Error('Nobody asked for this.')),
        roots: () => Promise.reject(new Error('Nobody asked for this.')),
      }),
    });
    const execution = await session.callTool(name, { label: 'greets' });
    expect(execution.kind).toBe('task');
    const { outcome } = await execution.settle();
    expect(resultFromTaskOutcome(outcome)).toMatchObject({
      content: [{ type: 'text', text: 'Hello, Ada!' }],
    });
    expect(JSON.stringify(questions)).toContain(asked);
    await session.close();
  },
  30_000,
);

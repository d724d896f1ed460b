// A client of 2026-07-28 that can have tasks.
import { expect, vi } from 'vitest';
import { CLIENT_CAPABILITIES, type StatelessOptions, stateless } from '../clients/stateless.ts';
import type { TestGateway, TestResponse } from '../gateway/gateway.ts';

export const TASKS = 'io.modelcontextprotocol/tasks';

export const WITH_TASKS = {
  [CLIENT_CAPABILITIES]: { elicitation: {}, extensions: { [TASKS]: {} } },
};

type Gateway = Pick<TestGateway, 'rpc'>;

export const send = (
  gateway: Gateway,
  method: string,
  params: Readonly<Record<string, unknown>>,
  options: StatelessOptions = {},
): Promise<TestResponse> =>
  stateless(gateway, method, params, { ...options, meta: { ...WITH_TASKS, ...options.meta } });

export const callTask = (
  gateway: Gateway,
  name: string,
  label: string,
  options?: StatelessOptions,
): Promise<TestResponse> => send(gateway, 'tools/call', { name, arguments: { label } }, options);

/** Resolves to the id of the task that a call began. */
export async function beginTask(
  gateway: Gateway,
  label: string,
  options?: StatelessOptions,
): Promise<string> {
  const { json } = await callTask(gateway, 'job', label, options);
  expect(json.result).toMatchObject({ resultType: 'task', status: 'working' });
  return json.result.taskId;
}

export const getTask = (
  gateway: Gateway,
  taskId: string,
  options?: StatelessOptions,
): Promise<TestResponse> => send(gateway, 'tasks/get', { taskId }, options);

/** Asks until the task has that status. */
export function taskBecomes(
  gateway: Gateway,
  taskId: string,
  status: string,
  options?: StatelessOptions,
) {
  return vi.waitFor(
    async () => {
      const { json } = await getTask(gateway, taskId, options);
      expect(json.result).toMatchObject({ taskId, status });
      return json.result;
    },
    { timeout: 10_000, interval: 20 },
  );
}

// §29.5: tasks of servers. The gateway keeps nothing of them: the id that a client has says which it is, sealed, for its
// user and its path alone.

import { fail } from '../../errors/gateway-error.ts';
import { hashSha256 } from '../../platform/ids.ts';
import { type JsonObject, parseObject } from '../../platform/json.ts';
import { toRawJson } from '../../platform/noted-json.ts';
import { checkRecordVersion, RECORD_VERSION } from '../../store/keys.ts';
import type { Seal } from '../../store/seal/seal.ts';
import type { RelayedTask } from '../catalog/served-catalog.ts';
import type { TaskOwner } from './task-records.ts';

/** Which task of which server. */
export interface TaskPlace {
  readonly server: string;
  /** The tool that was called, as clients of its path see it. */
  readonly tool: string;
  /** Of the server. */
  readonly id: string;
}

type Whose = Pick<TaskOwner, 'user' | 'path'>;

export interface RelayedTaskIds {
  seal(whose: Whose, place: TaskPlace): Promise<string>;
  /** Undefined where it is none of theirs. */
  open(whose: Whose, taskId: string): Promise<TaskPlace | undefined>;
}

/** No id of the gateway's own tasks begins so. */
const PREFIX = 'r.';

export const isRelayed = (taskId: string): boolean => taskId.startsWith(PREFIX);

export function createRelayedTaskIds(getSeal: () => Promise<Seal>): RelayedTaskIds {
  const requireSeal = () => getSeal().catch((cause: unknown) => fail('internal_error', { cause }));
  const describe = ({ user, path }: Whose): string =>
    `mcp:relayed-task:${hashSha256(JSON.stringify([user ?? null, path ?? null]))}`;

  return {
    async seal(whose, place) {
      const text = JSON.stringify({ version: RECORD_VERSION, ...place });
      return PREFIX + (await requireSeal()).seal(describe(whose), text);
    },
    async open(whose, taskId) {
      const text = (await requireSeal()).open(describe(whose), taskId.slice(PREFIX.length));
      const { version, server, tool, id }: JsonObject = (text && parseObject(text)) || {};
      if (text !== undefined) checkRecordVersion(version, 'params.taskId');
      return typeof server === 'string' && typeof tool === 'string' && typeof id === 'string'
        ? { server, tool, id }
        : undefined;
    },
  };
}

/** `Task`, or `DetailedTask`, under the id that its client knows. */
export const describeRelayed = (taskId: string, task: RelayedTask): JsonObject => ({
  ...task,
  ...(task.result && { result: toRawJson(task.result) }),
  taskId,
});

/** What a guard need not look at: of a handle nothing is the server's own text. */
export const describeHandle = (taskId: string, task: RelayedTask): JsonObject => {
  const { statusMessage: _, ...handle } = task;
  return { resultType: 'task', ...describeRelayed(taskId, handle) };
};

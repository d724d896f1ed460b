// §24: what users and operators see of a connection.
import type { ConnectionInfo } from './connection.ts';
import type { ConnectionRecord } from './records/connection-record.ts';

export const describeConnection = (
  server: string,
  record: ConnectionRecord | undefined,
): ConnectionInfo => ({
  server,
  state: record?.state ?? 'missing',
  account: record?.account,
  since: record?.since,
  scopes: record?.scopes,
  problem: record?.problem,
});

// §24: what users and operators see of a connection.
import type { ConnectionInfo, ConnectionServer } from './connection.ts';
import type { ConnectionRecord } from './records/connection-record.ts';
import { describeChanged, isMadeFor } from './records/made-for.ts';

export function describeConnection(
  server: ConnectionServer,
  record: ConnectionRecord | undefined,
): ConnectionInfo {
  const isOfAnother = record?.state === 'active' && !isMadeFor(record, server);
  return {
    server: server.name,
    state: isOfAnother ? 'login needed' : (record?.state ?? 'missing'),
    account: record?.account,
    since: record?.since,
    scopes: record?.scopes,
    problem: isOfAnother ? describeChanged(server) : record?.problem,
  };
}

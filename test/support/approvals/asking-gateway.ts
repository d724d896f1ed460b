// A gateway with the files server behind it, whose rules ask before a file is written.
import {
  type ConnectingGateway,
  type ConnectingGatewayOptions,
  startConnectingGateway,
} from '../connections/connecting-gateway.ts';
import { closeAfterTest } from '../lifetimes.ts';
import { type FilesServer, startFilesServer } from './files-server.ts';

export interface AskingGateway {
  readonly gateway: ConnectingGateway;
  readonly files: FilesServer;
}

export type Ask = 'user' | 'page' | 'operator';

export const rulesThatAsk = (ask: Ask) => [
  { who: 'everyone', may: ['files__*'] },
  { who: 'everyone', may: ['files__write_file', 'files__copy_file'], ask },
];

/** Closed after the test. */
export async function startAskingGateway(
  ask: Ask,
  { file, ...options }: Partial<ConnectingGatewayOptions> = {},
): Promise<AskingGateway> {
  const files = closeAfterTest(await startFilesServer());
  const gateway = closeAfterTest(
    await startConnectingGateway({
      ...options,
      servers: { files: { url: files.url } },
      file: { rules: rulesThatAsk(ask), ...file },
    }),
  );
  return { gateway, files };
}

export const WRITE = 'files__write_file';
export const ARGS = { path: '/tmp/a', content: 'hello' };

/** The link in what a model reads. */
export function readApprovalLink(text: string): string {
  const [link] = /https?:\/\/\S+\/approvals\/[\w-]+/.exec(text) ?? [];
  if (link === undefined) throw new Error(`There is no link in: ${text}`);
  return link;
}

export const APPROVE = /^Approve$/;
export const REFUSE = /^Refuse$/;

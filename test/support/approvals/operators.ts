// A program that operates a gateway, and one that only calls: clients of the configuration file that log in as themselves.
import type { ConnectingGateway } from '../connections/connecting-gateway.ts';
import { SECRET, withSecret } from '../oauth/machine-clients.ts';

export const OPERATED = { ADMIN_GROUPS: 'operators', ADMIN_CLIENTS: 'ops' };
export const PROGRAMS = [
  withSecret('ops', { groups: ['operators'], resources: ['/admin'] }),
  withSecret('ci', { resources: ['/mcp'] }),
];

export async function logInProgram(
  { baseUrl }: Pick<ConnectingGateway, 'baseUrl'>,
  id: string,
): Promise<string> {
  const answer = await fetch(`${baseUrl}/oauth/token`, {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'client_credentials',
      client_id: id,
      client_secret: SECRET,
    }),
  });
  const text = await answer.text();
  const { access_token: token } = JSON.parse(text);
  if (typeof token !== 'string') throw new Error(`The token endpoint answered ${text}`);
  return token;
}

export interface WaitingCall {
  readonly id: string;
  readonly [member: string]: unknown;
}

export async function createOperator(gateway: Pick<ConnectingGateway, 'baseUrl'>) {
  const token = await logInProgram(gateway, 'ops');
  const url = `${gateway.baseUrl}/admin/api/approvals`;
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };

  async function list(): Promise<readonly WaitingCall[]> {
    const answer = await fetch(url, { headers });
    const { approvals } = (await answer.json()) as { approvals: WaitingCall[] };
    return approvals;
  }

  return {
    list,
    /** Once it is there. */
    async find(): Promise<WaitingCall> {
      for (;;) {
        const [call] = await list();
        if (call !== undefined) return call;
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    },
    async decide(id: string, decision: string) {
      const body = JSON.stringify({ id, decision });
      const answer = await fetch(url, { method: 'POST', headers, body });
      return { status: answer.status, json: await answer.json() };
    },
  };
}

// §22: the endpoints of the operators' page, made of what each part of the gateway gives.
import type {
  AdminAct,
  AdminPanel,
  AdminView,
  AdminWork,
} from '../../http/endpoint/admin-panel.ts';
import type { ProtectedEndpoint } from '../../http/endpoint/endpoint.ts';
import { createJsonReply } from '../../http/endpoint/message.ts';
import { JSONRPC } from '../../http/endpoint/render-error.ts';
import type { Operators, RunAudited } from './operators.ts';

const API = '/admin/api';

export function createAdminEndpoints(
  panels: readonly AdminPanel[],
  operators: Operators,
  runAudited: RunAudited,
): readonly ProtectedEndpoint[] {
  /** Nothing is to be judged before it is counted. */
  const createView = ({ path, show }: AdminView): ProtectedEndpoint => ({
    ...GUARDED,
    method: 'GET',
    path: API + path,
    judge: (call) => ({
      access: undefined,
      run() {
        const query = new URLSearchParams(call.request.query);
        return runAudited(call, describeShow(path, query), async () =>
          createJsonReply(200, await show(query, call.user?.sub)),
        );
      },
    }),
  });

  const createAct = ({ method, path, hasParameter, prepare }: AdminAct): ProtectedEndpoint => ({
    ...GUARDED,
    method,
    path: API + path,
    ...(method === 'POST' && { body: 'json' }),
    ...(hasParameter && { hasParameter }),
    judge(call) {
      const { run, ...what } = prepare(call);
      return { access: undefined, run: () => runAudited(call, what, run) };
    },
  });

  /** For the front page, which links to that of operators. It tells callers nothing but their own groups. */
  const access: ProtectedEndpoint = {
    ...GUARDED,
    method: 'GET',
    path: `${API}/access`,
    judge: ({ user }) => ({
      access: undefined,
      run: () => createJsonReply(200, { isOperator: operators.isOperator(user) }),
    }),
  };

  return [
    access,
    ...panels.map((panel) => (panel.method === 'GET' ? createView(panel) : createAct(panel))),
  ];
}

/** Also whose sessions or tools, or which server's, were looked at: all that was asked for, so that nobody is hidden behind another. */
function describeShow(path: string, query: URLSearchParams): AdminWork {
  const whose = WHOSE.flatMap((name) => query.getAll(name)).filter((value) => value !== '');
  const target = whose.length === 0 ? path.slice(1) : `${path.slice(1)} of ${whose.join(', ')}`;
  return { action: 'show', target };
}

const WHOSE = ['user', 'issuer', 'person', 'email', 'group', 'server'] as const;

const GUARDED = {
  kind: 'protected',
  errors: JSONRPC,
  limit: 'admin',
  isForOwnPages: true,
  headers: { 'Cache-Control': 'no-store', 'Cross-Origin-Resource-Policy': 'same-origin' },
} as const;

// The operators' page.
import { names } from '../rules.ts';
import { defineSetting, type ValuesOf } from '../setting.ts';

const groupNames = names('groups, as the provider names them');
const clientIds = names('client IDs, as the configuration file or the provider knows them');

export const adminSettings = {
  groups: defineSetting('ADMIN_GROUPS', groupNames, {
    default: { value: [], text: '' },
    summary: "The groups whose members may use the operators' page, `/admin`.",
    details:
      'As the provider names them, character by character: in the claim of OIDC_GROUPS_CLAIM, or with tokens of the provider in the claim `groups` of the access token. Where a name has a comma, write a JSON array: `["CN=ops,OU=groups"]`. If unset, there is no such page. See [Operations](operations/operators.md#the-operators-page).',
  }),
  clients: defineSetting('ADMIN_CLIENTS', clientIds, {
    default: { value: [], text: '' },
    summary: "Other clients whose tokens the operators' API takes, such as a script of yours.",
    details:
      'By ID: [clients that log in as themselves](machine-clients.md), or clients of the provider as `azp` or `client_id` of their access tokens names them. Without any, only tokens that the page `/admin` got are taken. Give these tokens to nothing else: whoever has one can do what its operator can.',
  }),
};

export type AdminConfig = ValuesOf<typeof adminSettings>;

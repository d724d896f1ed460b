// The operators' page.
import { anyText, list } from '../rules.ts';
import { defineSetting, type Read } from '../setting.ts';

export interface AdminConfig {
  /** Whose members are operators; without any there is no such page. */
  readonly groups: readonly string[];
}

export const adminSettings = {
  groups: defineSetting<readonly string[]>({
    variable: 'ADMIN_GROUPS',
    rule: list(anyText, "a comma-separated list of groups, as the provider's tokens name them"),
    default: { value: [], text: '' },
    summary: "The groups whose members may use the operators' page, `/admin`.",
    details:
      'As the claim `groups` of their access token names them, character by character. If unset, there is no such page. See [Operations](operations.md#the-operators-page).',
  }),
};

export const readAdminConfig = (read: Read): AdminConfig => ({
  groups: read(adminSettings.groups),
});

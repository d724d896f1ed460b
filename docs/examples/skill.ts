import { defineSkill } from 'postern/define';

export const rollback = defineSkill({
  folder: new URL('./skills/rollback', import.meta.url),
});

// A panel of the operators' page: `GET /admin/api/tea`, drawn as a table on a tab of its own.
import type { AdminPanel } from '../../../src/http/endpoint/admin-panel.ts';

export const createTeaPanel = (minutes: number): AdminPanel => ({
  method: 'GET',
  path: '/tea',
  show: () => ({ pots: [{ name: 'green', minutes }] }),
  table: {
    group: 'tools',
    tab: 'Tea',
    title: 'Pots of tea',
    none: 'There are none.',
    rows: 'pots',
    columns: [
      { title: 'Name', member: 'name' },
      { title: 'Minutes', member: 'minutes' },
    ],
  },
});

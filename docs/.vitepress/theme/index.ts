import type { Theme } from 'vitepress';
import DefaultTheme from 'vitepress/theme-without-fonts';
import { watchNavigation } from './navigation.ts';
import SiteLayout from './SiteLayout.vue';
import './style.css';

const theme: Theme = {
  extends: DefaultTheme,
  Layout: SiteLayout,
  enhanceApp: ({ router }) => watchNavigation(router),
};
export default theme;

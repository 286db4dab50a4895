//! The page of settings: every one in force, with its value and where it comes from.

use maud::{Markup, html};

use super::{
    PageServer,
    shell::{self, BarPlace},
};
use crate::{
    look::{TableColumn, table},
    terminal::escape_name,
};

impl PageServer {
    pub(super) fn settings_page(&self) -> Markup {
        let row = |name: &str, value: &str, from: &str| {
            vec![
                html! { code { (escape_name(name)) } },
                html! { (escape_name(value)) },
                html! { (escape_name(from)) },
            ]
        };
        let settings = &self.options.settings;
        let rows: Vec<Vec<Markup>> =
            settings.iter().map(|setting| row(&setting.name, &setting.value, &setting.from)).collect();
        let columns = [TableColumn::text("setting"), TableColumn::text("value"), TableColumn::text("from")];
        let main = html! {
            h1 { "Settings" }
            p { "What is in force, and where each value comes from. They are read when the program starts." }
            (table("Settings in force", &columns, &rows))
            @if let Some(path) = self.store_path() {
                p { "Conversations are stored in " code { (escape_name(&path.display().to_string())) } "." }
            }
            p.soft.small { "The same at the command line: " code { "trimtab doctor --settings" } }
        };
        shell::whole_page("Settings", BarPlace::Settings, &main)
    }
}

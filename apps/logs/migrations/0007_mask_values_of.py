from django.db import migrations, models

import apps.logs.models

USUAL = [
    "apikey", "authorization", "credential", "jsessionid", "jwt", "key", "passwd", "password", "pwd", "secret",
    "sessionid", "sig", "signature", "token",
]  # fmt: skip


class Migration(migrations.Migration):
    dependencies = [("logs", "0006_log_forward_spans")]

    operations = [
        migrations.AddField(
            model_name="logsettings",
            name="mask_values_of",
            field=models.JSONField(db_default=USUAL, default=apps.logs.models.usual_secrets),
        ),
    ]

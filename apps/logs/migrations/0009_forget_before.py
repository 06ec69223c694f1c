from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("logs", "0008_counted_lines_pending")]

    operations = [
        migrations.AddField(
            model_name="logforward",
            name="forget_before",
            field=models.DateTimeField(null=True),
        ),
    ]
